# What docs/scheduler-config.md assumes: the operator, which has made the extender's certificates, and a kube-scheduler's files.
# shellcheck shell=bash
clean
installed '{modules: {pgpu: {enabled: true}}}'
before 'for f in ca.crt*' '
  kubectl patch apol default --type merge -p "{\"spec\": {\"scheduler\": {\"mode\": \"None\"}}}"
  soon 20 kubectl get secret -n quartermaster quartermaster-extender-client'
before 'flags=*' 'cp test/golden/scheduler_config/corpus/01-kubeadm-minimal.yaml scheduler-config.yaml'
before '*--manifest kube-scheduler.yaml*' 'cp test/golden/scheduler_config/manifests/kubeadm.yaml kube-scheduler.yaml'
exits 3 'quartermaster verify --scheduler default-scheduler*'
exits 3 '*--manifest kube-scheduler.yaml*'  # kubeadm's own names no configuration

# What README.md assumes: a cluster without Quartermaster, with two GPU nodes. A kube-scheduler runs in place of the Deployment's pods.
# shellcheck shell=bash
clean
node gpu-1 t4; node gpu-2 t4
before 'kubectl get anode gpu-1*' 'soon 20 kubectl get anode gpu-1'
before 'quartermaster verify gpu-1*' 'ready gpu-1 pgpu'
before 'kubectl apply -f -*name: share*' 'ready gpu-2 hami; scheduler quartermaster; soon 30 sends_to_scheduler'
exits 3 'quartermaster explain pod big*'

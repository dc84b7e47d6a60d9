# What docs/ask-for-a-card.md assumes: a node in each of three modes, files with the page's own pods, and a pod that is too big.
# shellcheck shell=bash
clean
installed '{modules: {pgpu: {enabled: true}, vgpu: {enabled: true}, mps: {enabled: true}}, enrolment: {maxUnavailable: 50}}'
node a100-0 a100 pgpu; node a100-1 a100 vgpu; node t4-0 t4 mps
ready a100-0 pgpu; ready a100-1 vgpu; ready t4-0 mps
before 'quartermaster lint --cluster pod.yaml*' '
  for block in $(ls -v block-*.yaml); do echo ---; cat "$block"; done >pods.yaml
  cp "$(grep -l "name: whole-card" block-*.yaml)" pod.yaml
  sed "s/whole-card/typo/; s,nvidia.com/gpu: 1,nvidia.com/gpus: 1," pod.yaml >typo.yaml'
before 'quartermaster explain pod big*' '
  sed "s/name: share/name: big/; s,vcuda-memory: 8,vcuda-memory: 400,; s/^spec:/spec:\n  schedulerName: quartermaster/" "$(grep -l "name: share}" block-*.yaml)" | kubectl apply -f -'
exits 3 'quartermaster explain pod big*'
before 'quartermaster explain pod share*' '
  kubectl apply -f "$(grep -l "name: share}" block-*.yaml)"
  kubectl wait --for=condition=Ready pod/share --timeout=20s'

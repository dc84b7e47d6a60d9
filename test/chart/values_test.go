package chart

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// The objects that values decide about, for two sets of values: nothing said, and everything said.
func TestS2_what_values_become(t *testing.T) {
	everything := `
vgpu_enable: true
policy:
  modules: {hami: {enabled: true, settings: {deviceSplitCount: "4"}}}
  customResources: {enforcement: Warn}
image: {registry: registry.example/mirror, tag: "1"}
imagePullSecrets: [{name: pull}]
podLabels: {team: gpu}
podAnnotations: {note: x}
networkPolicy: true
metrics: {serviceMonitor: {enabled: true, interval: 15s, labels: {release: prometheus}}}
`
	platform := `
commonLabels: {team: platform}
deploymentAnnotations: {reloader: "true"}
serviceAccount: {annotations: {role: gpu}}
podSecurityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}
securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}, seLinuxOptions: {level: "s0:c1"}}
extraEnv: [{name: HTTPS_PROXY, value: "http://proxy.example:3128"}]
extraVolumes: [{name: ca, configMap: {name: company-ca}}]
extraVolumeMounts: [{name: ca, mountPath: /etc/ssl/company, readOnly: true}]
topologySpreadConstraints: [{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: ScheduleAnyway}]
hostNetwork: true
strategy: {type: Recreate}
extraObjects:
  - {apiVersion: v1, kind: ConfigMap, metadata: {name: mine}, data: {a: b}}
  - |
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: {{ .Release.Name }}-theirs}
`
	for name, values := range map[string]string{"default": "", "everything": everything, "platform": platform} {
		objects, err := Template(values)
		if err != nil {
			t.Fatal(err)
		}
		var text, names strings.Builder
		for _, one := range objects {
			names.WriteString(one.Kind + " " + one.Name + "\n")
			for _, template := range []string{"deployment", "policy", "extra", "serviceaccount", "monitors", "networkpolicy", "poddisruptionbudget", "service", "uninstall", "tests/verify"} {
				if strings.HasPrefix(one.Text, "# Source: quartermaster/templates/"+template+".yaml\n") {
					text.WriteString("---\n" + one.Text)
				}
			}
		}
		Golden(t, name+".yaml", text.String())
		Golden(t, name+".objects.txt", names.String())
	}
}

// Whatever the values say of the policy is what the document says, to the last figure and text.
func TestS2_the_policy_document_is_what_values_say(t *testing.T) {
	for _, said := range []string{
		`{modules: {pgpu: {enabled: true, tolerations: [{key: a, operator: Exists, tolerationSeconds: 10000000}], args: ["--x=1", "on", "1"]}}}`,
		`{modules: {share: {enabled: true, image: "r/i@sha256:` + strings.Repeat("1", 64) + `", settings: {replicas: "10"}, resources: {limits: {cpu: 1, memory: 1Gi}}}}}`,
		`{modules: {ascend: {enabled: true, image: "x:1", device: {resources: [{name: huawei.com/Ascend910}], hostPaths: [{path: /dev/x}]}}}}`,
		`{enrolment: {default: pgpu, maxUnavailable: 3, drain: {mode: Evict, timeout: 1h}, labelAliases: [{key: a, value: "on", mode: pgpu}]}}`,
		`{customResources: {enforcement: "Off", publish: false}, compatibility: {enforcement: Deny}}`,
		`{imagePullSecrets: [{name: theirs}]}`,
		`{scheduler: {mode: Dedicated, isolateNodes: false, image: "r:5000/k8s/kube-scheduler", replicas: 3}}`,
	} {
		objects, err := Template("policy: "+said, "--set", "imagePullSecrets[0].name=ours")
		if err != nil {
			t.Errorf("%s: %v", said, err)
			continue
		}
		var want map[string]any
		if err := yaml.Unmarshal([]byte(said), &want); err != nil {
			t.Fatal(err)
		}
		if want["imagePullSecrets"] == nil {
			want["imagePullSecrets"] = []any{map[string]any{"name": "ours"}}
		}
		found := false
		for _, one := range objects {
			if one.Kind == "ConfigMap" && one.Name == "quartermaster-policy" {
				found = true
				document := policyOf(t, one)
				if !reflect.DeepEqual(document["spec"], any(want)) || document["kind"] != "AcceleratorPolicy" ||
					document["apiVersion"] != "quartermaster.io/v1alpha1" || document["metadata"].(map[string]any)["name"] != "default" {
					t.Errorf("%s became %v", said, document)
				}
			}
		}
		if !found {
			t.Errorf("%s: no ConfigMap", said)
		}
	}
}

// An overlay takes a value back with null. And the agent needs root, whatever the operator's container is given.
func Test_values_of_platforms_that_are_null_or_not_the_agents(t *testing.T) {
	for _, values := range []string{"hostNetwork: null", "serviceAccount: null", "{commonLabels: null, podLabels: {a: b}}", "podSecurityContext: null", "extraEnv: null", "uninstall: null"} {
		if _, err := Template(values); err != nil {
			t.Errorf("%s: %v", values, err)
		}
	}
	objects, err := Template("{securityContext: {runAsNonRoot: true, runAsUser: 1000}, podSecurityContext: {runAsNonRoot: true}}")
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range objects {
		if one.Kind == "DaemonSet" && (strings.Contains(one.Text, "1000") || strings.Contains(one.Text, "runAsNonRoot")) {
			t.Errorf("%s %s\n%s", one.Kind, one.Name, one.Text)
		}
	}
}

// Values that say nothing of the policy leave no trace of one: no file, no flag, no right to write it.
func TestS2_values_that_say_nothing(t *testing.T) {
	for _, values := range []string{"", "pgpu_enable: null\npolicy: {}\n", "policy: null\n", "imagePullSecrets: [{name: x}]\n"} {
		objects, err := Template(values)
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range objects {
			if one.Name == "quartermaster-policy" || (one.Kind == "Deployment" && strings.Contains(one.Text, "policy.yaml")) {
				t.Errorf("%q: %s %s\n%s", values, one.Kind, one.Name, one.Text)
			}
		}
	}
}

// refused: the chart does not take these values, and says what stands beside them.
func refused(t *testing.T, wrong map[string]string) {
	t.Helper()
	for values, want := range wrong {
		if _, err := Template(values); err == nil {
			t.Errorf("accepted: %s", values)
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\n%v\nlacks: %s", values, err, want)
		}
	}
}

// Wrong values are refused before anything is sent, with the path.
func TestS2_wrong_values_are_refused_with_their_path(t *testing.T) {
	refused(t, map[string]string{
		"replicas: 2":         "at '': additional properties 'replicas' not allowed",
		"pgpu_enabled: 1":     "at '': additional properties 'pgpu_enabled' not allowed",
		"pgpu_enable: 1":      "at '/pgpu_enable': got number, want",
		"policy: {modul: {}}": "at '/policy': additional properties 'modul' not allowed",
		"policy: {modules: {pgup: {enabled: true}}}":                                      "at '/policy/modules/pgup': value must be 'one of the modules gpushare, hami, mps, pgpu, share, vgpu, or a module of your own, which has a device'",
		"policy: {modules: {pgpu: {enable: true}}}":                                       "at '/policy/modules/pgpu': additional properties 'enable' not allowed",
		"policy: {modules: {pgpu: {enabled: 'yes'}}}":                                     "at '/policy/modules/pgpu/enabled': got string, want boolean",
		"policy: {modules: {pgpu: {settings: {MIG_STRATEGI: x}}}}":                        "at '/policy/modules/pgpu/settings': additional properties 'MIG_STRATEGI' not allowed",
		"policy: {modules: {hami: {settings: {defaultMem: 5}}}}":                          "at '/policy/modules/hami/settings/defaultMem': got number, want string",
		"policy: {modules: {hami: {settings: {defaultMem: 4Gi}}}}":                        "at '/policy/modules/hami/settings/defaultMem': value must be 'a whole number from 0 to 10000000, as text'",
		"policy: {modules: {hami: {settings: {defaultGPUNum: \"65\"}}}}":                  "at '/policy/modules/hami/settings/defaultGPUNum': value must be 'a whole number from 1 to 64, as text'",
		"policy: {modules: {hami: {settings: {deviceSplitCount: \"0\"}}}}":                "at '/policy/modules/hami/settings/deviceSplitCount': value must be 'a whole number from 1 to 1000, as text'",
		"policy: {modules: {hami: {settings: {deviceCoreScaling: 2x}}}}":                  "at '/policy/modules/hami/settings/deviceCoreScaling': value must be 'a number above 0, at most 100, as text'",
		"policy: {modules: {hami: {settings: {resourceMem: gpumem}}}}":                    "at '/policy/modules/hami/settings/resourceMem': value must be 'extended resources, <domain>/<name>, outside kubernetes.io'",
		"policy: {modules: {hami: {settings: {disablecorelimit: \"on\"}}}}":               "at '/policy/modules/hami/settings/disablecorelimit': value must be '\"true\" or \"false\"'",
		"policy: {modules: {pgpu: {settings: {MIG_STRATEGY: all}}}}":                      "at '/policy/modules/pgpu/settings/MIG_STRATEGY': value must be 'one of none, single, mixed'",
		"policy: {modules: {hami: {nodeSets: [{name: a, settings: {defaultMem: 4Gi}}]}}}": "at '/policy/modules/hami/nodeSets/0/settings/defaultMem': value must be 'a whole number",
		"podSecurityContext: {runAsUser: root}":                                           "at '/podSecurityContext/runAsUser': got string, want null or integer",
		"podSecurityContext: {seccompProfile: RuntimeDefault}":                            "at '/podSecurityContext/seccompProfile': got string, want null or object",
		"podSecurityContext: {fsGroupChangePolicy: Never}":                                "at '/podSecurityContext/fsGroupChangePolicy': value must be one of 'Always', 'OnRootMismatch'",
		"securityContext: {runAsNonRoot: \"true\"}":                                       "at '/securityContext/runAsNonRoot': got string, want null or boolean",
		"securityContext: {capabilities: {drop: ALL}}":                                    "at '/securityContext/capabilities/drop': got string, want array",
		"global: {imageRegistry: 'https://h.local'}":                                      "at '/global/imageRegistry': value must be 'HOST[:PORT][/PATH]",
		"{global: {imageRegistry: r.local}, image: {repository: quay.io/qm}}":             "and global.imageRegistry is r.local: the image would be",
		"policy: {modules: {mps: {settings: {a: b}}}}":                                    "at '/policy/modules/mps': additional properties 'settings' not allowed",
		"policy: {modules: {hami: {nodeSets: [{name: a, settings: {x: y}}]}}}":            "at '/policy/modules/hami/nodeSets/0/settings': additional properties 'x' not allowed",
		"policy: {modules: {pgpu: {device: {resources: [{name: a.b/c}]}}}}":               "at '/policy/modules/pgpu': additional properties 'device' not allowed",
		"policy: {modules: {own: {device: {resource: []}}}}":                              "at '/policy/modules/own/device': additional properties 'resource' not allowed",
		"policy: {enrolment: {drain: {mode: Evct}}}":                                      "at '/policy/enrolment/drain/mode': value must be one of 'Wait', 'Evict'",
		"policy: {enrolment: {maxUnavailable: 10%%}}":                                     "at '/policy/enrolment/maxUnavailable'",
		"policy: {customResources: {enforcement: Off}}":                                   "at '/policy/customResources/enforcement': got boolean, want string",
		"policy: {customResources: {namespace: team}}":                                    "at '/policy/customResources': additional properties 'namespace' not allowed",
		"{admission: {webhook: auto, port: 8080}, metrics: {port: 8080}}":                 "admission.port is 8080, which is metrics.port; allowed: another port of the pod",
		"rbac: {agregate: true}":                                                          "at '/rbac': additional properties 'agregate' not allowed",
		"policy: {removing: true}":                                                        "at '/policy': additional properties 'removing' not allowed",
		"image: {repo: x}":                                                                "at '/image': additional properties 'repo' not allowed",
		"metrics: {serviceMonitor: {enable: true}}":                                       "at '/metrics/serviceMonitor': additional properties 'enable' not allowed",
		"metrics: {podMonitor: {interval: 30}}":                                           "at '/metrics/podMonitor/interval': got number, want string",
		"resources: {limit: {cpu: 1}}":                                                    "at '/resources': additional properties 'limit' not allowed",
		"tolerations: [{key: a, op: Exists}]":                                             "at '/tolerations/0': additional properties 'op' not allowed",
		"affinity: {nodeAffinitty: {}}":                                                   "at '/affinity': additional properties 'nodeAffinitty' not allowed",
		"podLabels: {app.kubernetes.io/name: x}":                                          "at '/podLabels/app.kubernetes.io~1name': false schema",
		"podAnnotations: {checksum/policy: x}":                                            "at '/podAnnotations/checksum~1policy': false schema",
		"commonLabels: {app.kubernetes.io/name: x}":                                       "at '/commonLabels/app.kubernetes.io~1name': false schema",
		"{commonLabels: {a: b}, podLabels: {a: c}}":                                       "podLabels and commonLabels both have a; allowed: one of them",
		"extraEnv: [{name: POD_NAME, value: x}]":                                          "at '/extraEnv/0/name': 'not' failed",
		"extraVolumes: [{name: policy}]":                                                  "at '/extraVolumes/0/name': 'not' failed",
		"extraVolumeMounts: [{name: a, mountPath: b}]":                                    "at '/extraVolumeMounts/0/mountPath': 'b' does not match pattern",
		"podSecurityContext: {runAsNonroot: true}":                                        "at '/podSecurityContext': additional properties 'runAsNonroot' not allowed",
		"securityContext: {readOnlyRootFileSystem: true}":                                 "at '/securityContext': additional properties 'readOnlyRootFileSystem' not allowed",
		"strategy: {rollingUpdate: {maxUnavailble: 1}}":                                   "at '/strategy/rollingUpdate': additional properties 'maxUnavailble' not allowed",
		"dnsPolicy: None":                                                         "at '/dnsPolicy': value must be one of",
		"extraEnv: [{name: A=B}]":                                                 "at '/extraEnv/0/name': 'A=B' does not match pattern",
		"extraVolumeMounts: [{name: a, mountPath: /b}]":                           "extraVolumeMounts names the volume a; allowed: the names in extraVolumes: ",
		"serviceAccount: {name: x}":                                               "at '/serviceAccount': additional properties 'name' not allowed",
		"strategy: {type: Rolling}":                                               "at '/strategy/type': value must be one of 'RollingUpdate', 'Recreate'",
		"uninstall: {job: \"no\"}":                                                "at '/uninstall/job': got string, want boolean",
		"uninstall: {timeoutSeconds: 30}":                                         "at '/uninstall/timeoutSeconds': minimum: got 30, want 120",
		"{vgpu_enable: true, policy: {modules: {vgpu: {enabled: false}}}}":        "vgpu_enable is true, but policy.modules.vgpu.enabled is false; allowed: the same in both; set one of them",
		"{mps_enable: false, policy: {modules: {mps: {enabled: true}}}}":          "mps_enable is false, but policy.modules.mps.enabled is true; allowed: the same in both; set one of them",
		"metrics: {service: false, serviceMonitor: {enabled: true}}":              "metrics.serviceMonitor.enabled is true, but metrics.service is false",
		"metrics: {podMonitor: {enabled: true}, serviceMonitor: {enabled: true}}": "metrics.serviceMonitor.enabled and metrics.podMonitor.enabled are both true",
		"agent: {runtimeClassName: \"a: b\"}":                                     "at '/agent/runtimeClassName': 'a: b' does not match pattern",
		"agent: {driverRoot: \"/a: b\"}":                                          "at '/agent/driverRoot': '/a: b' does not match pattern",
		"agent: {metrics: {port: 9402, podResources: \"/a: b/pod-resources\"}}":   "at '/agent/metrics/podResources': '/a: b/pod-resources' does not match pattern",
		"monitoring: {prometheus: {install: true, tag: null}}":                    "at '/monitoring/prometheus': missing property 'tag'",
		"monitoring: {prometheus: {install: true, tag: \"#x\"}}":                  "at '/monitoring/prometheus/tag': '#x' does not match pattern",
		"monitoring: {prometheus: {install: true, repository: \"a: b\"}}":         "at '/monitoring/prometheus/repository': value must be '[HOST[:PORT]/]NAME in small letters",
		"monitoring: {prometheus: {install: true, storageClass: \"a: b\"}}":       "at '/monitoring/prometheus/storageClass': 'a: b' does not match pattern",
		"monitoring: {prometheus: {install: true, storage: 0Gi}}":                 "at '/monitoring/prometheus/storage': '0Gi' does not match pattern",
		"monitoring: {prometheus: {install: true, retention: 0d}}":                "at '/monitoring/prometheus/retention': '0d' does not match pattern",
		"monitoring: {prometheus: {install: true, retention: 300y}}":              "at '/monitoring/prometheus/retention': '300y' does not match pattern",
		"monitoring: {rules: {labels: {app.kubernetes.io/name: x}}}":              "at '/monitoring/rules/labels/app.kubernetes.io~1name': false schema",
		"monitoring: {dashboards: {labels: {\"bad key!\": x}}}":                   "at '/monitoring/dashboards/labels': additional properties 'bad key!' not allowed",
		"metrics: {podMonitor: {labels: {a: \"b c\"}}}":                           "at '/metrics/podMonitor/labels/a': 'b c' does not match pattern",
		"console: {enabled: true, tlsSecret: \"a: b\"}":                           "at '/console/tlsSecret': 'a: b' does not match pattern",
		"console: {enabled: true, prometheusSecret: Mine}":                        "at '/console/prometheusSecret': 'Mine' does not match pattern",
		"console: {enabled: true, prometheusUrl: \"https://a b\"}":                "at '/console/prometheusUrl': 'https://a b' does not match pattern",
		"console: {enabled: true, prometheusUrl: \"https://a:9090:\"}":            "at '/console/prometheusUrl': 'https://a:9090:' does not match pattern",
		"console: {enabled: true, prometheusUrl: \"https://u:p@a\"}":              "at '/console/prometheusUrl'",
		"console: {enabled: true, prometheusUrl: \"https://a/?x=1\"}":             "at '/console/prometheusUrl'",
		"console: {enabled: true, prometheusUrl: \"https://a #x\"}":               "at '/console/prometheusUrl'",
	})
}

func Test_settings_that_the_API_server_takes_are_taken(t *testing.T) {
	for _, settings := range []string{`{defaultMem: "0"}`, `{defaultMem: "10000000"}`, `{defaultMem: "9999999"}`, `{defaultMem: "05000"}`,
		`{defaultGPUNum: "1"}`, `{defaultGPUNum: "9"}`, `{defaultGPUNum: "59"}`, `{defaultGPUNum: "64"}`, `{deviceCoreScaling: "1.5"}`,
		`{resourceMem: example.com/memory}`, `{disablecorelimit: "true"}`} {
		if _, err := Template("policy: {modules: {hami: {settings: " + settings + "}}}"); err != nil {
			t.Errorf("%s: %v", settings, err)
		}
	}
	for _, context := range []string{"{runAsUser: 1000, fsGroup: 0, runAsNonRoot: true}", "{seccompProfile: {type: Localhost, localhostProfile: a.json}}",
		"{supplementalGroups: [1, 2], sysctls: [{name: net.core.somaxconn, value: '1024'}], fsGroupChangePolicy: OnRootMismatch}"} {
		if _, err := Template("podSecurityContext: " + context); err != nil {
			t.Errorf("%s: %v", context, err)
		}
	}
}

// Names that no container runtime reads, and amounts that no pod can start with.
func TestS2_images_and_amounts_that_no_node_takes_are_refused(t *testing.T) {
	const registry, repository, tag = "value must be 'HOST[:PORT][/PATH] in small letters, without https://", "value must be '[HOST[:PORT]/]NAME in small letters", "value must be 'a tag of letters"
	const reference, memory, cores = "value must be '[HOST[:PORT]/]NAME[:TAG]", "value must be 'an amount of bytes with a unit", "value must be 'a number of cores"
	refused(t, map[string]string{
		"image: {registry: 'https://harbor.local/'}":                                "at '/image/registry': " + registry,
		"image: {registry: Harbor.local}":                                           "at '/image/registry': " + registry,
		"image: {registry: 'r.local:port'}":                                         "at '/image/registry': " + registry,
		"global: {registry: {address: 'https://h.local'}}":                          "at '/global/registry/address': " + registry,
		"image: {repository: 'quartermaster:v1'}":                                   "at '/image/repository': " + repository,
		"image: {repository: Quartermaster}":                                        "at '/image/repository': " + repository,
		"image: {repository: ''}":                                                   "at '/image/repository': " + repository,
		"image: {repository: /quartermaster}":                                       "at '/image/repository': " + repository,
		"image: {tag: ':v1'}":                                                       "at '/image/tag': " + tag,
		"image: {tag: 'v1.0 '}":                                                     "at '/image/tag': " + tag,
		"policy: {modules: {hami: {image: 'https://x/y:1'}}}":                       "at '/policy/modules/hami/image': " + reference,
		"policy: {scheduler: {image: 'r.local/Kube:1'}}":                            "at '/policy/scheduler/image': " + reference,
		"{image: {registry: 'r.local:5000', repository: 'r.local:5000/infra/qm'}}":  "image.repository is r.local:5000/infra/qm, which names a registry, and image.registry is r.local:5000: the image would be",
		"{global: {registry: {address: r.local}}, image: {repository: quay.io/qm}}": "and global.registry.address is r.local: the image would be",
		"agent: {resources: {limits: {memory: 64}}}":                                "at '/agent/resources/limits/memory': " + memory,
		"agent: {resources: {limits: {memory: 64MB}}}":                              "at '/agent/resources/limits/memory': " + memory,
		"resources: {limits: {memory: '64'}}":                                       "at '/resources/limits/memory': " + memory,
		"console: {resources: {requests: {memory: 100m}}}":                          "at '/console/resources/requests/memory': " + memory,
		"resources: {limits: {cpu: 100Mi}}":                                         "at '/resources/limits/cpu': " + cores,
		"resources: {limits: {cpu: 1000}}":                                          "at '/resources/limits/cpu': " + cores,
		"resources: {limits: {cpu: -1}}":                                            "at '/resources/limits/cpu': " + cores,
		"resources: {limits: {mem: 1Gi}}":                                           "at '/resources/limits/mem': value must be 'left out: a resource is cpu, memory,",
		"policy: {modules: {vgpu: {resources: {limits: {memory: 64}}}}}":            "at '/policy/modules/vgpu/resources/limits/memory': " + memory,
		"agent: {resources: {requests: {memory: 1Gi}}}":                             "agent.resources.requests.memory is 1Gi, which is more than limits.memory, 64Mi; allowed: at most the limit",
		"resources: {requests: {cpu: 500m}, limits: {cpu: 0.2}}":                    "resources.requests.cpu is 500m, which is more than limits.cpu, 0.2",
		"priorityClassName: System Critical":                                        "at '/priorityClassName': 'System Critical' does not match pattern",
		"imagePullSecrets: [{name: My_Secret}]":                                     "at '/imagePullSecrets/0/name': 'My_Secret' does not match pattern",
		"nodeSelector: {a: 'b c'}":                                                  "at '/nodeSelector/a': 'b c' does not match pattern",
	})
	for _, values := range []string{
		"image: {registry: 'registry.local:5000'}", "image: {registry: 'registry.local:5000/infra/'}", "image: {registry: '[fd00::1]:5000'}",
		"image: {registry: harbor}", "image: {repository: 'registry.local:5000/infra/quartermaster'}", "image: {repository: infra/quarter-master__x.y}",
		"image: {tag: v1.0_rc-1}", "{image: {registry: r.local, repository: infra/quartermaster}}",
		"policy: {modules: {hami: {image: 'r.local:5000/a/b:v1@sha256:" + strings.Repeat("a", 64) + "'}}}", "policy: {modules: {hami: {image: ''}}}",
		"resources: {limits: {cpu: 2, memory: 1Gi, nvidia.com/gpu: 1, hugepages-2Mi: 64Mi, ephemeral-storage: 1.5Gi}}",
		"resources: {limits: {cpu: '0.5', memory: 536870912}, requests: {cpu: 250m, memory: 65536Ki}}", "resources: {requests: {cpu: 0, memory: 0}}",
		"agent: {resources: {requests: {memory: 1Gi}, limits: {memory: null}}}",
	} {
		if _, err := Template(values); err != nil {
			t.Errorf("%s: %v", values, err)
		}
	}
}

// Keys of charts that people move from: each is refused with what is there instead.
func TestS2_values_of_other_charts_are_refused_with_what_is_here_instead(t *testing.T) {
	refused(t, map[string]string{
		"devicePlugin: {deviceSplitCount: 10}":               "at '/devicePlugin': value must be 'left out: it is a value of the charts of HAMi and the GPU Operator; here",
		"scheduler: {kubeScheduler: {imageTag: v1}}":         "at '/scheduler': value must be 'left out: it is a value of the chart of HAMi; here",
		"resourceName: nvidia.com/gpu":                       "at '/resourceName': value must be 'left out: it is a value of the chart of HAMi; here",
		"driver: {enabled: false}":                           "at '/driver': value must be 'left out: it is a value of the chart of the GPU Operator, and this chart installs no driver; here",
		"toolkit-version: 1":                                 "at '/toolkit-version': value must be 'left out: it is a value of the chart of the GPU Operator",
		"dcgmExporter: {enabled: true}":                      "at '/dcgmExporter': value must be 'left out: it is a value of the chart of the GPU Operator",
		"migStrategy: mixed":                                 "at '/migStrategy': value must be 'left out: it is a value of the chart of nvidia-device-plugin; here",
		"policy: {modules: {hamii: {enabled: true}}}":        "at '/policy/modules/hamii': value must be 'one of the modules gpushare, hami,",
		"policy: {modules: {pgu: {}}}":                       "at '/policy/modules/pgu': value must be 'one of the modules gpushare, hami,",
		"policy: {modules: {own: {device: {resource: []}}}}": "at '/policy/modules/own/device': additional properties 'resource' not allowed",
	})
}

// After installing: the next command for what is there.
func TestS2_notes_say_the_next_command(t *testing.T) {
	// Helm shows notes only where it installs; here they are a template like others.
	withNotes := filepath.Join(t.TempDir(), "quartermaster")
	notes, err := os.ReadFile(filepath.Join(Chart(), "templates/NOTES.txt"))
	if err == nil {
		err = os.CopyFS(withNotes, os.DirFS(Chart()))
	}
	if err == nil {
		text := "{{- define \"notes\" }}" + string(notes) + "{{ end }}notes: {{ include \"notes\" . | quote }}\n"
		err = os.WriteFile(filepath.Join(withNotes, "templates/notes.yaml"), []byte(text), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	for values, want := range map[string][]string{
		"replicaCount=2":                    {"kubectl create -f -", "kind: AcceleratorPolicy", "kubectl label node NODE nvidia-device-enable=pgpu"},
		"mps_enable=true,vgpu_enable=false": {"applies the AcceleratorPolicy `default` from the values", "kubectl label node NODE nvidia-device-enable=mps"},
		"policy.modules.hami.enabled=true":  {"kubectl label node NODE nvidia-device-enable=hami"},
		"pgpu_enable=false":                 {"applies the AcceleratorPolicy `default` from the values", "helm upgrade", "--set pgpu_enable=true"},
		"console.enabled=true":              {"kubectl port-forward -n gpu service/quartermaster-console 8888:80, then http://localhost:8888/console/"},
		"replicaCount=0":                    {"No operator runs here", "`helm test` has nothing to run"},
		"simulate.nodes=t4=2":               {"Simulated nodes: t4=2.", "shows them, such as t4-0", "need a toleration: {key: kwok.x-k8s.io/node, operator: Exists}"},
	} {
		notes := notesOf(t, withNotes, values)
		for _, one := range want {
			if !strings.Contains(notes, one) {
				t.Errorf("%s: no %q in\n%s", values, one, notes)
			}
		}
		if strings.Contains(values, "enable") && !strings.HasPrefix(values, "console") && strings.Contains(notes, "kind: AcceleratorPolicy") {
			t.Errorf("%s: asks for a policy that values gave:\n%s", values, notes)
		}
		if strings.Contains(notes, "kubectl apply") {
			t.Errorf("%s: a policy that is there already would be overwritten:\n%s", values, notes)
		}
		upgraded := notesOf(t, withNotes, values, "--is-upgrade")
		if !strings.Contains(upgraded, "kubectl get apol,anode") {
			t.Errorf("%s: an upgrade does not say where to look:\n%s", values, upgraded)
		}
		for _, writes := range []string{"kind: AcceleratorPolicy", "kubectl apply", "kubectl create", "kubectl label", "--set"} {
			if strings.Contains(upgraded, writes) {
				t.Errorf("%s: after an upgrade NOTES say %q:\n%s", values, writes, upgraded)
			}
		}
	}
}

func notesOf(t *testing.T, folder, values string, more ...string) string {
	t.Helper()
	text, err := Render("qm", folder, append([]string{"-n", "gpu", "--show-only", "templates/notes.yaml", "--set", values}, more...)...)
	if err != nil {
		t.Fatal(err)
	}
	var read struct{ Notes string }
	if err := yaml.Unmarshal([]byte(text), &read); err != nil {
		t.Fatal(err)
	}
	return read.Notes
}

func TestS57_helm_lint_is_content(t *testing.T) {
	for _, values := range []string{"pgpu_enable=null", "pgpu_enable=true,metrics.podMonitor.enabled=true,networkPolicy=true"} {
		if _, err := Helm("lint", "--strict", Chart(), "--set", values); err != nil {
			t.Error(err)
		}
	}
}

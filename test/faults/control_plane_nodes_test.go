package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"quartermaster.io/test/faults/kit"
)

// S54: what the agents on the control-plane nodes say stands in the policy, with what is wrong first. The agents themselves are in test/static_pod and
// test/realnode; here the test writes their rows.
func TestS54_a_row_per_control_plane_node_in_the_policy_long(t *testing.T) {
	d := openDen(t, map[string]int{"pgpu": 1})
	const rows = "quartermaster-static-pod"
	maps := d.Client.CoreV1().ConfigMaps(kit.Namespace)
	noRows := func() error { // the chart's, without what earlier tests wrote
		_, err := maps.Patch(context.Background(), rows, types.JSONPatchType, []byte(`[{"op":"add","path":"/data","value":{}}]`), metav1.PatchOptions{})
		return err
	}
	d.must(noRows())
	t.Cleanup(func() { noRows() })
	for _, name := range []string{"control-plane-1", "control-plane-2"} {
		_, err := d.Client.CoreV1().Nodes().Create(d.ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"node-role.kubernetes.io/control-plane": ""}}}, metav1.CreateOptions{})
		d.must(err)
		t.Cleanup(func() { d.Client.CoreV1().Nodes().Delete(d.ctx, name, metav1.DeleteOptions{}) })
	}
	says := func(node, state, reason string) {
		row, err := json.Marshal(map[string]any{"state": state, "generation": 1, "checksum": strings.Repeat("ab", 32), "version": "v1.36.3", "since": "2026-01-02T03:04:05Z", "reason": reason})
		d.must(err)
		patch, err := json.Marshal(map[string]any{"data": map[string]string{node: string(row)}})
		d.must(err)
		_, err = maps.Patch(d.ctx, rows, types.MergePatchType, patch, metav1.PatchOptions{})
		d.must(err)
	}
	d.mode("StaticPod", nil)
	o := d.startBehind(d.proxy("control-plane-nodes"), d.args...)
	d.must(o.WaitReady(30 * time.Second))

	// The policy's rows as "name reason", and the condition as "status reason: message".
	told := func() (all []string, condition string) {
		p, err := d.Dynamic.Resource(kit.Policies).Get(d.ctx, "default", metav1.GetOptions{})
		d.must(err)
		list, _, _ := unstructured.NestedSlice(p.Object, "status", "schedulers")
		for _, one := range list {
			row := one.(map[string]any)
			if row["mode"] != "StaticPod" || row["desired"] != int64(1) {
				t.Errorf("a row says %v", row)
			}
			all = append(all, fmt.Sprintf("%v %v", row["name"], row["reason"]))
		}
		_, is := d.row()
		if is != nil {
			condition = fmt.Sprintf("%v %v: %v", is["status"], is["reason"], is["message"])
		}
		return
	}
	await := func(want, like string) {
		t.Helper()
		d.eventuallySo(20*time.Second, func() string {
			all, condition := told()
			if is := strings.Join(all, ", "); is != want || !strings.HasPrefix(condition, like) {
				return fmt.Sprintf("the policy says %q, %q; not %q, %q", is, condition, want, like)
			}
			return ""
		})
	}
	await("control-plane-1 NoAgent, control-plane-2 NoAgent", "False NoAgent: 0 of 2 control-plane nodes")
	says("control-plane-1", "Applied", "")
	await("control-plane-1 Applied, control-plane-2 NoAgent", "False NoAgent: 1 of 2 control-plane nodes")
	says("control-plane-2", "RolledBack", "after 180 s kube-scheduler-control-plane-2 is not ready")
	await("control-plane-1 Applied, control-plane-2 RolledBack", "False RolledBack: 1 of 2 control-plane nodes ask the extender; control-plane-2 RolledBack: after 180 s")
	if value, ok := o.Metric("quartermaster_static_pod_masters", `state="RolledBack"`); !ok || value != 1 {
		t.Errorf("quartermaster_static_pod_masters is %v", value)
	}
	says("control-plane-2", "Applied", "")
	await("control-plane-1 Applied, control-plane-2 Applied", "True StaticPod: 2 of 2 control-plane nodes ask the extender")
	d.must(d.Client.CoreV1().Nodes().Delete(d.ctx, "control-plane-2", metav1.DeleteOptions{}))
	await("control-plane-1 Applied", "True StaticPod: 1 of 1 control-plane node asks the extender")
	d.mode("None", nil)
	await("control-plane-1 Applied", "False SwitchingOff: 1 of 1")
	says("control-plane-1", "Off", "")
	await("", "")
	d.eventuallySo(10*time.Second, func() string {
		events, err := d.Client.EventsV1().Events("").List(d.ctx, metav1.ListOptions{})
		d.must(err)
		for _, e := range events.Items {
			if e.Reason == "SchedulerRolledBack" && e.Type == corev1.EventTypeWarning && strings.Contains(e.Note, "control-plane-2") {
				return ""
			}
		}
		return "no event says that control-plane-2 was rolled back"
	})
	d.rest(o, time.Second)
}

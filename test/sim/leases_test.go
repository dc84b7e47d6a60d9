package main

import (
	"context"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

func eventually(t *testing.T, what string, true func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !true(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not in 10 s: %s", what)
		}
	}
}

// A node that is deleted and made again, many times and while its renewal is under way, does not keep the others from being renewed.
func TestLeasesAreRenewedWhileANodeIsMadeAgain(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	client := fake.NewSimpleClientset()
	version := 0
	for _, verb := range []string{"create", "update"} { // a fake server gives no versions, and a renewal takes its time
		client.PrependReactor(verb, "leases", func(action clienttesting.Action) (bool, runtime.Object, error) {
			version++
			action.(clienttesting.CreateAction).GetObject().(*coordinationv1.Lease).ResourceVersion = time.Duration(version).String()
			return false, nil, nil
		})
	}
	l := &leases{client: client}
	done := make(chan error)
	go func() { done <- l.run(ctx, 4) }()
	t.Cleanup(func() { end(); <-done })

	create := func(name, uid string) {
		_, err := client.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(uid)}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	owner := func(name string) types.UID {
		lease, err := client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return ""
		} else if err != nil {
			t.Fatal(err)
		}
		return lease.OwnerReferences[0].UID
	}
	create("remade", "remade-0")
	eventually(t, "the first lease", func() bool { return owner("remade") == "remade-0" })
	for i := range 50 {
		if err := client.CoreV1().Nodes().Delete(ctx, "remade", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		create("remade", "remade-"+string(rune('a'+i)))
	}
	create("other", "other-0")
	eventually(t, "the lease of another node", func() bool { return owner("other") == "other-0" })
	eventually(t, "the lease of the last node of that name", func() bool { return owner("remade") == types.UID("remade-"+string(rune('a'+49))) })
	if held := l.queue.Len(); held != 0 {
		t.Errorf("%d names wait in the queue, and every lease is renewed", held)
	}
}

func TestALeaseIsAKubelets(t *testing.T) {
	now := time.Now()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "1"}}
	lease := held(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "a", OwnerReferences: []metav1.OwnerReference{{UID: "0"}}}}, node, now)
	if *lease.Spec.HolderIdentity != "a" || *lease.Spec.LeaseDurationSeconds != 40 || !lease.Spec.RenewTime.Time.Equal(now) ||
		len(lease.OwnerReferences) != 1 || lease.OwnerReferences[0].UID != "1" {
		t.Errorf("%+v", lease)
	}
}

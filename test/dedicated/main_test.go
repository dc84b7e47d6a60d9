package dedicated

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"quartermaster.io/test/admission"
	"quartermaster.io/test/admission/server"
	"quartermaster.io/test/faults/kit"
)

var (
	minor = env("QM_K8S", "1.36")
	api   *server.Server
	ctx   = context.Background()
)

func env(name, otherwise string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return otherwise
}

// One server for all tests, which take turns. QM_DEDICATED_CLUSTER names one that is left running. Tolerations are only those of a test:
// the plugin that adds two to every pod is off, so that there are pods without any.
func TestMain(m *testing.M) {
	name := os.Getenv("QM_DEDICATED_CLUSTER")
	code, err := 1, error(nil)
	if api, err = server.Start(ctx, env("QM_DEDICATED_CLUSTER", fmt.Sprintf("dedicated-%d", os.Getpid())), minor,
		"--apiserver-arg=--disable-admission-plugins=DefaultTolerationSeconds"); err == nil {
		err = prepare()
	}
	if err == nil {
		code = m.Run()
	} else {
		fmt.Fprintln(os.Stderr, "dedicated:", err)
	}
	if api != nil && name == "" {
		if err := api.Down(); err != nil {
			fmt.Fprintln(os.Stderr, "dedicated:", err)
		}
	}
	os.Exit(code)
}

var systemNamespaces = []string{"kube-system", "kube-public", "kube-node-lease", kit.Namespace}

func prepare() error {
	for _, namespace := range systemNamespaces {
		if err := until(20*time.Second, "a ServiceAccount in "+namespace, func() (bool, error) {
			_, err := api.Client.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{})
			return err == nil, err
		}); err != nil {
			return err
		}
	}
	return nil
}

func until(patience time.Duration, what string, done func() (bool, error)) error {
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		ok, err := done()
		if ok {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s: not within %s: %v", what, patience, err)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// declared is the one key the ResourceRules object has.
const declared = "example.com/fpga"

// write the ResourceRules object as the operator does; scheduler: its label, empty for none.
func write(scheduler string) error {
	spec := admission.NewSpec()
	spec.Rules[declared] = admission.Rule{Source: "kube-public/cf-crl-lab-fpga"}
	spec.Finish()
	object := spec.Object("default", "Off")
	if scheduler != "" {
		object.SetLabels(map[string]string{admission.Enforcement: "Off", "quartermaster.io/scheduler": scheduler})
	}
	objects := api.Dynamic.Resource(admission.RulesResource)
	is, err := objects.Get(ctx, "default", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = objects.Create(ctx, object, metav1.CreateOptions{})
		return err
	} else if err != nil {
		return err
	}
	object.SetResourceVersion(is.GetResourceVersion())
	_, err = objects.Update(ctx, object, metav1.UpdateOptions{})
	return err
}

// forget the ResourceRules object.
func forget() error {
	err := api.Dynamic.Resource(admission.RulesResource).Delete(ctx, "default", metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

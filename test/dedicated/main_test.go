package dedicated

import (
	"context"
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
	minor = kit.Minor()
	must  = kit.Must
	api   *server.Server
	ctx   = context.Background()
)

// One server for all tests, which take turns. QM_DEDICATED_CLUSTER names one that is left running. Tolerations are only those of a test:
// the plugin that adds two to every pod is off, so that there are pods without any.
func TestMain(m *testing.M) {
	os.Exit(kit.RunLane(m, "dedicated", "QM_DEDICATED_CLUSTER", func(name string) (err error) {
		if api, err = server.Start(ctx, name, minor, "--apiserver-arg=--disable-admission-plugins=DefaultTolerationSeconds"); err != nil {
			return err
		}
		return prepare()
	}))
}

func until(patience time.Duration, what string, done func() (bool, error)) error {
	return kit.Until(ctx, patience, what, done)
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
	return api.WriteRules(ctx, object)
}

// forget the ResourceRules object.
func forget() error {
	err := api.Dynamic.Resource(admission.RulesResource).Delete(ctx, "default", metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

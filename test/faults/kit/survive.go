package kit

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
)

// Lives of a cluster's API server that has a known fault of its own: below 1.36, a ValidatingAdmissionPolicy with variables that is compiled
// while another is evaluated may end the process, for all policies share one map of variables (kubernetes/kubernetes#135757, fixed in 1.36
// by #135759). A test that writes policies several times a second next to a stream of pods meets it once in some hours.
type Lives struct {
	cluster *Cluster
	lock    sync.Mutex
	deaths  int
	read    int64 // of its log
}

// Survive has the cluster's clients do what a kubelet does: an API server that ended of that fault is started again, and the request that met
// its end is sent again. Any other end is reported with the server's last words.
func (c *Cluster) Survive() (*Lives, error) {
	lives := &Lives{cluster: c}
	c.Config.Wrap(func(next http.RoundTripper) http.RoundTripper { return survivor{lives, next} })
	var err error
	if c.Client, err = kubernetes.NewForConfig(c.Config); err != nil {
		return nil, err
	}
	c.Dynamic, err = dynamic.NewForConfig(c.Config)
	return lives, err
}

// Deaths so far.
func (l *Lives) Deaths() int {
	l.lock.Lock()
	defer l.lock.Unlock()
	return l.deaths
}

// errAlive: the request failed, but the server runs.
var errAlive = errors.New("the server runs")

// again starts a server that ended after the caller had seen this many deaths.
func (l *Lives) again(seen int) error {
	l.lock.Lock()
	defer l.lock.Unlock()
	if l.deaths > seen {
		return nil // another request's doing
	}
	for deadline := time.Now().Add(2 * time.Second); l.cluster.Runs("kube-apiserver"); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			return errAlive
		}
	}
	words, err := l.lastWords()
	if err != nil {
		return err
	}
	if !knownEnd(words) {
		return fmt.Errorf("kube-apiserver ended by itself: %.2000s", words)
	}
	l.deaths++
	fmt.Fprintln(os.Stderr, "kube-apiserver ended of a known fault of its own (kubernetes/kubernetes#135757) and is started again")
	return l.cluster.Start("kube-apiserver")
}

// lastWords: what its log says from the first sign of its end.
func (l *Lives) lastWords() (string, error) {
	file, err := os.Open(filepath.Join(l.cluster.Dir, "logs/kube-apiserver.log"))
	if err != nil {
		return "", err
	}
	defer file.Close()
	if _, err := file.Seek(l.read, io.SeekStart); err != nil {
		return "", err
	}
	text, err := io.ReadAll(file)
	l.read += int64(len(text))
	for _, sign := range []string{"fatal error: ", "panic: "} {
		if at := strings.Index(string(text), "\n"+sign); at >= 0 {
			return string(text[at+1:]), err
		}
	}
	return string(text[max(0, len(text)-2000):]), err
}

// knownEnd: two threads met in the types of variables. The thread that found it out is the first one told.
func knownEnd(words string) bool {
	parts := strings.SplitN(words, "\n\n", 3)
	return len(parts) > 1 && strings.HasPrefix(parts[0], "fatal error: concurrent map ") &&
		(strings.Contains(parts[1], "k8s.io/apiserver/pkg/cel.(*DeclTypeProvider).Find") || strings.Contains(parts[1], ".(*CompositionEnv).AddField("))
}

type survivor struct {
	lives *Lives
	next  http.RoundTripper
}

func (s survivor) RoundTrip(request *http.Request) (*http.Response, error) {
	for {
		seen := s.lives.Deaths()
		reply, err := s.next.RoundTrip(request)
		if err == nil || request.Context().Err() != nil || (request.Body != nil && request.GetBody == nil) {
			return reply, err
		}
		if why := s.lives.again(seen); errors.Is(why, errAlive) {
			return nil, err
		} else if why != nil {
			return nil, fmt.Errorf("%w: %w", err, why)
		}
		request = request.Clone(request.Context())
		if request.GetBody != nil {
			if request.Body, err = request.GetBody(); err != nil {
				return nil, err
			}
		}
	}
}

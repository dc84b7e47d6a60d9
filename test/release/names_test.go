package release

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// serverAddress is where the API server of these tests is; both names lead to it, one by the hosts file and one by DNS.
const serverAddress = "127.0.0.9:6443"

// The executable in a network namespace and a root of its own. The root has nothing that is compiled but the executable, and an
// nsswitch.conf as desktops have it, which names modules that static programs cannot load.
func TestNamesAndAuthoritiesAreFoundWithoutLibraries(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("network namespaces take root")
	}
	executable := filepath.Join(program(t), "quartermaster")
	for _, want := range []struct{ name, host, kubeconfig, request string }{
		{"a name of the hosts file", "api.hosts.test", "token: secret", "Bearer secret"},
		{"a name of DNS", "api.dns.test", "token: secret", "Bearer secret"},
		{"a credential plugin", "api.dns.test", "exec: {apiVersion: client.authentication.k8s.io/v1, command: /credential, interactiveMode: Never, env: [{name: QM_ROLE, value: credential}]}", "Bearer from-a-plugin"},
	} {
		// The kubeconfig names no CA: the machine's is where Fedora has it.
		root := t.TempDir()
		copyFile(t, executable, filepath.Join(root, "quartermaster"))
		copyFile(t, os.Args[0], filepath.Join(root, "credential"))
		for name, text := range map[string]string{
			"etc/nsswitch.conf": "hosts: mymachines resolve [!UNAVAIL=return] mdns4_minimal [NOTFOUND=return] myhostname files dns\n",
			"etc/hosts":         "127.0.0.9 api.hosts.test\n",
			"etc/resolv.conf":   "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n",
			"kubeconfig": fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}],
				clusters: [{name: c, cluster: {server: "https://%s:6443"}}], users: [{name: u, user: {%s}}]}`, want.host, want.kubeconfig),
		} {
			must(t, os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755))
			must(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o644))
		}
		must(t, os.Mkdir(filepath.Join(root, "dev"), 0o755))
		must(t, syscall.Mknod(filepath.Join(root, "dev/null"), syscall.S_IFCHR|0o666, 1<<8|3))
		trace := filepath.Join(t.TempDir(), "trace")
		inside := exec.Command(os.Args[0], root, trace)
		inside.Env = append(os.Environ(), "QM_ROLE=network")
		inside.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNET}
		said, err := inside.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %s", want.name, err, said)
		}
		if !strings.Contains(string(said), fmt.Sprintf("request to %s:6443 with %s\n", want.host, want.request)) {
			t.Errorf("%s: the server saw no such request: %s", want.name, said)
		}
		opened, err := os.ReadFile(trace)
		must(t, err)
		if !strings.Contains(string(opened), "/etc/hosts") {
			t.Fatalf("%s: strace shows no look into the hosts file: %s", want.name, opened)
		}
		if library := regexp.MustCompile(`.*\.so[."].*`).Find(opened); library != nil {
			t.Errorf("%s: it looks for a library: %s", want.name, library)
		}
	}
}

func copyFile(t *testing.T, source, target string) {
	t.Helper()
	content, err := os.ReadFile(source)
	must(t, err)
	must(t, os.WriteFile(target, content, 0o755))
}

func printCredential() {
	fmt.Println(`{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": "from-a-plugin"}}`)
}

// serveNetwork is the other side: DNS and an API server that refuses everything. It runs the executable in the root and prints the requests.
func serveNetwork(args []string) int {
	root, trace := args[0], args[1]
	if said, err := exec.Command("ip", "link", "set", "lo", "up").CombinedOutput(); err != nil {
		log.Printf("ip: %v: %s", err, said)
		return 1
	}
	certificate, authority := selfSigned("api.hosts.test", "api.dns.test")
	bundle := filepath.Join(root, "etc/pki/tls/certs/ca-bundle.crt")
	if err := os.MkdirAll(filepath.Dir(bundle), 0o755); err != nil {
		log.Print(err)
		return 1
	}
	if err := os.WriteFile(bundle, authority, 0o644); err != nil {
		log.Print(err)
		return 1
	}
	names, err := net.ListenPacket("udp4", "127.0.0.1:53")
	if err != nil {
		log.Print(err)
		return 1
	}
	go answerNames(names)
	listener, err := tls.Listen("tcp4", serverAddress, &tls.Config{Certificates: []tls.Certificate{certificate}})
	if err != nil {
		log.Print(err)
		return 1
	}
	var mutex sync.Mutex
	go http.Serve(listener, http.HandlerFunc(func(answer http.ResponseWriter, request *http.Request) {
		mutex.Lock()
		defer mutex.Unlock()
		fmt.Printf("request to %s with %s\n", request.Host, request.Header.Get("Authorization"))
		http.Error(answer, "no", http.StatusForbidden)
	}))
	command := exec.Command("strace", "-f", "-o", trace, "-e", "trace=open,openat", "unshare", "--root", root, "/quartermaster", "inspect", "nodes", "--kubeconfig", "/kubeconfig")
	command.Env = []string{"PATH=" + os.Getenv("PATH")}
	said, err := command.CombinedOutput()
	// strace sees what unshare opens, too: what comes before the executable is cut off.
	opened, _ := os.ReadFile(trace)
	if _, after, found := strings.Cut(string(opened), "/kubeconfig"); found {
		opened = []byte(after)
	}
	os.WriteFile(trace, opened, 0o644)
	fmt.Printf("%s%v\n", said, err)
	return 0
}

func answerNames(connection net.PacketConn) {
	buffer := make([]byte, 1500)
	for {
		size, peer, err := connection.ReadFrom(buffer)
		if err != nil {
			return
		}
		var message dnsmessage.Message
		if message.Unpack(buffer[:size]) != nil || len(message.Questions) != 1 {
			continue
		}
		question := message.Questions[0]
		message.Header.Response, message.Header.RCode, message.Additionals = true, dnsmessage.RCodeNameError, nil
		if question.Name.String() == "api.dns.test." {
			message.Header.RCode = dnsmessage.RCodeSuccess
			if question.Type == dnsmessage.TypeA {
				message.Answers = []dnsmessage.Resource{{Header: dnsmessage.ResourceHeader{Name: question.Name, Class: dnsmessage.ClassINET, TTL: 5},
					Body: &dnsmessage.AResource{A: [4]byte{127, 0, 0, 9}}}}
			}
		}
		if packed, err := message.Pack(); err == nil {
			connection.WriteTo(packed, peer)
		}
	}
}

func selfSigned(names ...string) (tls.Certificate, []byte) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		log.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, DNSNames: names, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	made, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		log.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{made}, PrivateKey: key}, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: made})
}

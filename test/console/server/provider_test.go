package server

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"quartermaster.io/test/chart"
	"quartermaster.io/test/faults/kit"
)

// What people sign in with: the real programs dex and oauth2-proxy of the folder QM_OIDC, with the files of docs/console.md. Of these files only
// addresses, paths and times are others here; what is added are people, certificates of an authority of the test, and dex's storage.

const (
	consoleName  = "console.example.com"
	clientSecret = "a-secret-of-the-test"
	// Of "password".
	passwordHash = "$2a$10$2b2cU8CPhOTaGrs1HRQuAueS7JTT5ZHsHSzYiFPm1leZck7Mc8T4W"
	tokenLife    = 20 * time.Second // 10m on the page
	refreshAfter = 8 * time.Second  // 5m on the page
)

// identityProvider is dex. Its address and certificates are there before the cluster, whose API server has to know them.
type identityProvider struct {
	folder, port, authority string
	roots                   *x509.CertPool
}

// provider is nil where QM_OIDC names no folder with the programs.
var provider *identityProvider

// runWithProvider runs the tests with the options of a cluster that takes dex's tokens, where the programs are.
func runWithProvider(tests func(options []string) int) int {
	if os.Getenv("QM_OIDC") == "" {
		return tests(nil)
	}
	p, err := newProvider()
	if err != nil {
		fmt.Println("no identity provider:", err)
		return 1
	}
	defer os.RemoveAll(p.folder)
	options, err := p.serverOptions()
	if err != nil {
		fmt.Println("no identity provider:", err)
		return 1
	}
	provider = p
	return tests(options)
}

func newProvider() (*identityProvider, error) {
	folder, err := os.MkdirTemp("", "oidc-")
	if err != nil {
		return nil, err
	}
	port, err := kit.FreePort()
	if err != nil {
		return nil, err
	}
	p := &identityProvider{folder: folder, port: strconv.Itoa(port), roots: x509.NewCertPool()}
	return p, p.issueCertificate()
}

// issueCertificate makes an authority, and one certificate for dex and the proxies.
func (p *identityProvider) issueCertificate() error {
	now := time.Now()
	parent := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority of the test"}, NotBefore: now.Add(-time.Hour),
		NotAfter: now.Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	leaf := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: consoleName}, NotBefore: now.Add(-time.Hour),
		NotAfter: now.Add(time.Hour), DNSNames: []string{consoleName}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	parentKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	authority, err := x509.CreateCertificate(rand.Reader, parent, parent, &parentKey.PublicKey, parentKey)
	if err != nil {
		return err
	}
	certificate, err := x509.CreateCertificate(rand.Reader, leaf, parent, &key.PublicKey, parentKey)
	if err != nil {
		return err
	}
	keyBytes, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	encoded := func(kind string, bytes []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes}))
	}
	p.authority = encoded("CERTIFICATE", authority)
	p.roots.AppendCertsFromPEM([]byte(p.authority))
	return errors.Join(p.write("ca.crt", p.authority), p.write("tls.crt", encoded("CERTIFICATE", certificate)),
		p.write("tls.key", encoded("PRIVATE KEY", keyBytes)))
}

func (p *identityProvider) path(name string) string { return filepath.Join(p.folder, name) }

func (p *identityProvider) write(name, text string) error {
	return os.WriteFile(p.path(name), []byte(text), 0o600)
}

func (p *identityProvider) issuer() string { return "https://127.0.0.1:" + p.port + "/dex" }

// block is a file of docs/console.md, with the issuer of the test.
func (p *identityProvider) block(name string) (string, error) {
	page, err := os.ReadFile(filepath.Join(chart.Root(), "docs/console.md"))
	if err != nil {
		return "", err
	}
	match := regexp.MustCompile("(?ms)^```\\w+ " + name + "\n(.*?)^```$").FindSubmatch(page)
	if match == nil {
		return "", fmt.Errorf("docs/console.md has no block %s", name)
	}
	return strings.ReplaceAll(string(match[1]), "https://dex.example.com/dex", p.issuer()), nil
}

// object is such a file of YAML.
func (p *identityProvider) object(name string) (map[string]any, error) {
	text, err := p.block(name)
	if err != nil {
		return nil, err
	}
	var out map[string]any
	err = yaml.UnmarshalStrict([]byte(text), &out)
	return out, err
}

// serverOptions are those of a cluster whose API server takes tokens of dex.
func (p *identityProvider) serverOptions() ([]string, error) {
	authentication, err := p.object("sign-in-apiserver")
	if err != nil {
		return nil, err
	}
	jwt := authentication["jwt"].([]any)[0].(map[string]any)
	jwt["issuer"].(map[string]any)["certificateAuthority"] = p.authority
	text, err := yaml.Marshal(authentication)
	if err != nil {
		return nil, err
	}
	return []string{"--apiserver-arg=--authentication-config=" + p.path("authentication.yaml")}, p.write("authentication.yaml", string(text))
}

// start runs dex with these people, by name with their groups. Each has the address NAME@example.com.
func (p *identityProvider) start(t *testing.T, people map[string][]string) {
	t.Helper()
	config, err := p.object("sign-in-provider")
	if err != nil {
		t.Fatal(err)
	}
	config["storage"] = map[string]any{"type": "memory"}
	config["web"] = map[string]any{"https": "127.0.0.1:" + p.port, "tlsCert": p.path("tls.crt"), "tlsKey": p.path("tls.key")}
	config["expiry"].(map[string]any)["idTokens"] = tokenLife.String()
	config["enablePasswordDB"] = true
	var passwords []any
	for name, groups := range people {
		passwords = append(passwords, map[string]any{"email": name + "@example.com", "username": name, "userID": "id-of-" + name, "hash": passwordHash,
			"groups": groups})
	}
	config["staticPasswords"] = passwords
	text, err := yaml.Marshal(config)
	if err == nil {
		err = p.write("dex.yaml", string(text))
	}
	if err != nil {
		t.Fatal(err)
	}
	start(t, []string{"CLIENT_SECRET=" + clientSecret}, filepath.Join(os.Getenv("QM_OIDC"), "dex"), "serve", p.path("dex.yaml"))
	p.await(t, "127.0.0.1:"+p.port, "/dex/.well-known/openid-configuration")
}

func (p *identityProvider) await(t *testing.T, address, path string) {
	t.Helper()
	client := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: p.roots}}}
	until(t, 30*time.Second, address+path+" answers", func() error {
		response, err := client.Get("https://" + address + path)
		if err != nil {
			return err
		}
		response.Body.Close()
		if response.StatusCode != 200 {
			return errors.New(response.Status)
		}
		return nil
	})
}

// startProxy runs oauth2-proxy with the file of the page, before that address. It returns the proxy's port. Changes are by key, as TOML.
func (p *identityProvider) startProxy(t *testing.T, upstream string, changes map[string]string) string {
	t.Helper()
	text, err := p.block("sign-in-proxy")
	if err != nil {
		t.Fatal(err)
	}
	port := freePort(t)
	values := map[string]string{"https_address": "127.0.0.1:" + port, "upstreams": upstream, "client_secret_file": p.path("client-secret"),
		"cookie_secret_file": p.path("cookie-secret"), "tls_cert_file": p.path("tls.crt"), "tls_key_file": p.path("tls.key")}
	quoted := map[string]string{"cookie_refresh": strconv.Quote(refreshAfter.String())}
	for key, value := range values {
		quoted[key] = strconv.Quote(value)
	}
	quoted["upstreams"] = "[" + quoted["upstreams"] + "]"
	for key, value := range quoted {
		line := regexp.MustCompile("(?m)^" + key + " = .*$")
		if len(line.FindAllString(text, -1)) != 1 {
			t.Fatalf("the proxy's file in docs/console.md has not one line %s", key)
		}
		text = line.ReplaceAllLiteralString(text, key+" = "+value)
	}
	for key, value := range changes {
		text = regexp.MustCompile("(?m)^"+key+" = .*\n").ReplaceAllLiteralString(text, "") + key + " = " + value + "\n"
	}
	text += "provider_ca_files = [" + strconv.Quote(p.path("ca.crt")) + "]\n"
	config := "proxy-" + port + ".cfg"
	err = errors.Join(p.write("client-secret", clientSecret), p.write("cookie-secret", "0123456789abcdef0123456789abcdef"), p.write(config, text))
	if err != nil {
		t.Fatal(err)
	}
	start(t, nil, filepath.Join(os.Getenv("QM_OIDC"), "oauth2-proxy"), "--config", p.path(config))
	p.await(t, "127.0.0.1:"+port, "/ping")
	return port
}

// passing is a request that came through a proxy.
type passing struct {
	time   time.Time
	method string
	path   string
	header http.Header
}

func (p passing) token() string { return strings.TrimPrefix(p.header.Get("Authorization"), "Bearer ") }

// gate is between the proxies and the console: it passes all on, and keeps what came.
type gate struct {
	url      string
	lock     sync.Mutex
	passings []passing
}

func newGate(t *testing.T, port string) *gate {
	t.Helper()
	g := &gate{}
	target := &url.URL{Scheme: "http", Host: "127.0.0.1:" + port}
	forward := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(request *httputil.ProxyRequest) {
		request.SetURL(target)
		request.Out.Host = request.In.Host
	}}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g.url = "http://" + listener.Addr().String()
	server := &http.Server{Handler: http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		g.lock.Lock()
		g.passings = append(g.passings, passing{time.Now(), request.Method, request.URL.Path, request.Header.Clone()})
		g.lock.Unlock()
		forward.ServeHTTP(writer, request)
	})}
	go server.Serve(listener)
	t.Cleanup(func() { server.Close() })
	return g
}

// all that came up to now.
func (g *gate) all() []passing {
	g.lock.Lock()
	defer g.lock.Unlock()
	return slices.Clone(g.passings)
}

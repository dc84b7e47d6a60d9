package kit

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"sync"
	"time"
)

type gateState int

const (
	open gateState = iota
	frozen
	refusing
)

// gate holds the state all connections of a proxy obey, below TLS.
type gate struct {
	mu    sync.Mutex
	turn  *sync.Cond
	state gateState
	conns map[net.Conn]bool
}

func newGate() *gate {
	g := &gate{conns: map[net.Conn]bool{}}
	g.turn = sync.NewCond(&g.mu)
	return g
}

func (g *gate) set(s gateState) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.state = s
	if s == refusing {
		for c := range g.conns {
			reset(c)
		}
	}
	g.turn.Broadcast()
}

// pass waits while the gate is frozen.
func (g *gate) pass() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.state == frozen {
		g.turn.Wait()
	}
}

func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		tcp.SetLinger(0)
	}
	c.Close()
}

type gatedListener struct {
	net.Listener
	gate *gate
}

func (l *gatedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		l.gate.mu.Lock()
		refuse := l.gate.state == refusing
		if !refuse {
			l.gate.conns[c] = true
		}
		l.gate.mu.Unlock()
		if !refuse {
			return &gatedConn{c, l.gate}, nil
		}
		reset(c)
	}
}

type gatedConn struct {
	net.Conn
	gate *gate
}

func (c *gatedConn) Read(b []byte) (int, error) {
	c.gate.pass()
	n, err := c.Conn.Read(b)
	c.gate.pass() // what arrived while frozen stays here
	return n, err
}

func (c *gatedConn) Write(b []byte) (int, error) {
	c.gate.pass()
	return c.Conn.Write(b)
}

func (c *gatedConn) Close() error {
	c.gate.mu.Lock()
	delete(c.gate.conns, c.Conn)
	c.gate.mu.Unlock()
	return c.Conn.Close()
}

// lifeOfKeys is longer than an operator's day can be ahead of ours.
const lifeOfKeys = 5 * 366 * 24 * time.Hour

// selfSigned is a certificate for loopback that is its own authority.
func selfSigned(name string) (tls.Certificate, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "fault-proxy-" + name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(lifeOfKeys),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}

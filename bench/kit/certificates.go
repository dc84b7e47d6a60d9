package kit

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Certificates writes an authority, ca.crt and ca.key, and a certificate of it for each name. They are ECDSA P-256, as ours are.
func Certificates(folder string, names ...string) (*x509.CertPool, error) {
	var authority *x509.Certificate
	var signer *ecdsa.PrivateKey
	pool := x509.NewCertPool()
	for _, name := range append([]string{"ca"}, names...) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return nil, err
		}
		certificate := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour),
			NotAfter: time.Now().Add(24 * time.Hour), KeyUsage: x509.KeyUsageDigitalSignature, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
		if authority == nil {
			certificate.IsCA, certificate.BasicConstraintsValid, certificate.KeyUsage, certificate.ExtKeyUsage = true, true, x509.KeyUsageCertSign, nil
			authority, signer = certificate, key
		}
		der, err := x509.CreateCertificate(rand.Reader, certificate, authority, key.Public(), signer)
		if err != nil {
			return nil, err
		}
		private, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			return nil, err
		}
		text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
		if name == "ca" {
			pool.AppendCertsFromPEM(text)
		}
		if err := errors.Join(os.WriteFile(filepath.Join(folder, name+".crt"), text, 0o600),
			os.WriteFile(filepath.Join(folder, name+".key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600)); err != nil {
			return nil, err
		}
	}
	return pool, nil
}

package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// secrets are the files by which the parts of a cluster trust each other.
type secrets struct {
	ca         string // certificate
	cert, key  string // of the API server
	accounts   string // private key that signs the tokens of service accounts
	tokens     string // token file of the API server
	admin      string // the token of system:masters
	kubeconfig string // of the admin, written once the address is known
}

func newSecrets(folder string) (*secrets, error) {
	s := &secrets{
		ca:         filepath.Join(folder, "ca.crt"),
		cert:       filepath.Join(folder, "api.crt"),
		key:        filepath.Join(folder, "api.key"),
		accounts:   filepath.Join(folder, "accounts.key"),
		tokens:     filepath.Join(folder, "tokens.csv"),
		kubeconfig: filepath.Join(folder, "admin.kubeconfig"),
	}
	if err := s.writeCertificates(); err != nil {
		return nil, err
	}
	if _, err := writeKey(s.accounts); err != nil {
		return nil, err
	}
	var random [16]byte
	if _, err := rand.Read(random[:]); err != nil {
		return nil, err
	}
	s.admin = hex.EncodeToString(random[:])
	line := s.admin + `,admin,admin,"system:masters"` + "\n"
	return s, os.WriteFile(s.tokens, []byte(line), 0o600)
}

// writeCertificates makes an authority and the API server's certificate.
func (s *secrets) writeCertificates() error {
	authority := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "test authority"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(24 * time.Hour),
		KeyUsage:              x509.KeyUsageCertSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	if err := writeCertificate(s.ca, authority, authority, signer, signer); err != nil {
		return err
	}
	key, err := writeKey(s.key)
	if err != nil {
		return err
	}
	return writeCertificate(s.cert, &x509.Certificate{
		SerialNumber: big.NewInt(2),
		Subject:      pkix.Name{CommonName: "kube-apiserver"},
		NotBefore:    authority.NotBefore,
		NotAfter:     authority.NotAfter,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1), net.ParseIP(ServiceAddress)},
	}, authority, key, signer)
}

func writeCertificate(path string, c, parent *x509.Certificate, own, signer *ecdsa.PrivateKey) error {
	der, err := x509.CreateCertificate(rand.Reader, c, parent, own.Public(), signer)
	if err != nil {
		return err
	}
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600)
}

func writeKey(path string) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	block := &pem.Block{Type: "EC PRIVATE KEY", Bytes: der}
	return key, os.WriteFile(path, pem.EncodeToMemory(block), 0o600)
}

// writeKubeconfig writes the file by which the controllers find the API.
func (s *secrets) writeKubeconfig(url string) error {
	text := `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "` + url + `", certificate-authority: "` + s.ca + `"}}]
users: [{name: u, user: {token: "` + s.admin + `"}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`
	return os.WriteFile(s.kubeconfig, []byte(text), 0o600)
}

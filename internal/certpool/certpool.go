// Package certpool reads the certificates of authorities, in PEM, that a client trusts.
package certpool

import (
	"crypto/x509"
	"fmt"
	"os"
)

// EmptyError means that a file was read, but holds no certificate.
type EmptyError struct{ File string }

func (e *EmptyError) Error() string { return fmt.Sprintf("%s holds no certificate", e.File) }

// Read returns the certificates of a file. The error is that of the operating system, or an [EmptyError].
func Read(file string) (*x509.CertPool, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(b) {
		return nil, &EmptyError{file}
	}
	return pool, nil
}

// Package join has acceptors: rules by which a master accepts minions that prove who they are, without an operator.
// A master asks them in the order of master.KeyOptions.Acceptors.
//
//	sign-in of an unknown key ─▶ acceptor 1 ─▶ acceptor 2 ─▶ … ─▶ no verdict: the key is pending
//	                                  │ accept or reject ends the chain
package join

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/protocol/crypt"
)

// Fingerprints accepts keys by their SHA-256 fingerprint, as `salt-call --local key.finger` shows it. want returns
// the fingerprint of an id, "" for an unknown one. A key with another fingerprint is refused, whatever token or
// other proof comes with it.
func Fingerprints(want func(ctx context.Context, id string) (string, error)) master.Acceptor {
	return master.Acceptor{Name: "fingerprint", BeforeToken: true, Judge: func(ctx context.Context, a master.Applicant) (master.Verdict, error) {
		print, err := want(ctx, a.ID)
		switch {
		case err != nil || print == "":
			return master.Verdict{}, err
		case print != a.Fingerprint:
			return rejectWith("its key has another fingerprint"), nil
		}
		return acceptWith("its fingerprint is known"), nil
	}}
}

// Fingerprint returns the fingerprint of a public key in PEM, as Fingerprints compares it and `salt-call --local
// key.finger` shows it.
func Fingerprint(pubText string) (string, error) {
	key, err := crypt.ParsePublicKey([]byte(pubText))
	if err != nil {
		return "", fmt.Errorf("cannot make a fingerprint: %w", err)
	}
	return key.Fingerprint("sha256")
}

func acceptWith(why string) master.Verdict {
	return master.Verdict{Decision: master.Accept, Reason: why}
}

func rejectWith(why string) master.Verdict {
	return master.Verdict{Decision: master.Reject, Reason: why}
}

// X509 accepts minions with a certificate that leads to Roots and names them. A minion without one is left to other
// acceptors; one with a bad certificate is refused.
type X509 struct {
	Roots *x509.CertPool
	// KeyUsages are the usages of which the certificate must have one; none means client authentication.
	KeyUsages []x509.ExtKeyUsage
	// Names reports whether a certificate belongs to an id. nil means that the id is its common name or one of its
	// DNS names.
	Names func(c *x509.Certificate, id string) bool
	// Revoked reports whether a certificate of a verified chain is revoked; nil means that none is.
	Revoked func(ctx context.Context, c *x509.Certificate) (bool, error)
	// Now returns the time; nil means time.Now.
	Now func() time.Time
}

// Acceptor returns the acceptor.
func (x X509) Acceptor() master.Acceptor {
	return master.Acceptor{Name: "x509", Judge: func(ctx context.Context, a master.Applicant) (master.Verdict, error) {
		if len(a.Certificates) == 0 {
			return master.Verdict{}, nil
		}
		if err := x.check(ctx, a); err != nil {
			return rejectWith(err.Error()), nil
		}
		own := a.Certificates[0]
		return acceptWith("certificate " + own.SerialNumber.Text(16) + " of " + own.Issuer.String()), nil
	}}
}

func (x X509) check(ctx context.Context, a master.Applicant) error {
	if x.Roots == nil {
		return errors.New("X509.Roots is not set: no certificate is trusted")
	}
	opts := x509.VerifyOptions{Roots: x.Roots, Intermediates: x509.NewCertPool(), KeyUsages: x.KeyUsages, CurrentTime: timeOf(x.Now)}
	if len(opts.KeyUsages) == 0 {
		opts.KeyUsages = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	}
	for _, c := range a.Certificates[1:] {
		opts.Intermediates.AddCert(c)
	}
	own := a.Certificates[0]
	chains, err := own.Verify(opts)
	if err != nil {
		return err
	}
	names := x.Names
	if names == nil {
		names = func(c *x509.Certificate, id string) bool {
			return c.Subject.CommonName == id || slices.Contains(c.DNSNames, id)
		}
	}
	if !names(own, a.ID) {
		return errors.New("the certificate belongs to another minion")
	}
	if x.Revoked == nil {
		return nil
	}
	for _, c := range chains[0] {
		revoked, err := x.Revoked(ctx, c)
		if err != nil {
			return fmt.Errorf("cannot find out whether the certificate is revoked: %w", err)
		}
		if revoked {
			return errors.New("the certificate is revoked")
		}
	}
	return nil
}

func timeOf(f func() time.Time) time.Time {
	if f == nil {
		return time.Now()
	}
	return f()
}

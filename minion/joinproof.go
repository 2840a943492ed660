package minion

import (
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"strings"

	"github.com/brine-salt/brine/protocol"
)

// maxProofFile is the largest size in bytes of a file with a proof.
const maxProofFile = 64 << 10

// joinProof reads the proofs for a master that does not know the minion's key: a certificate with its key
// (join_certificate, join_certificate_key) and a document from the machine's provider (join_document).
func joinProof(certificate, key, document string) (protocol.JoinProof, error) {
	var p protocol.JoinProof
	var errs []error
	if certificate != "" {
		if err := readPair(&p, certificate, key); err != nil {
			p = protocol.JoinProof{}
			errs = append(errs, fmt.Errorf("join_certificate: %w", err))
		}
	}
	if document != "" {
		var err error
		if p.Document, err = readProof(document); err != nil {
			errs = append(errs, fmt.Errorf("join_document: %w", err))
		}
	}
	return p, errors.Join(errs...)
}

func readPair(p *protocol.JoinProof, certificate, key string) error {
	chain, err := readProof(certificate)
	if err != nil {
		return err
	}
	for block, rest := pem.Decode(chain); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return err
		}
		p.Certificates = append(p.Certificates, c)
	}
	if len(p.Certificates) == 0 {
		return fmt.Errorf("%s has no certificate", certificate)
	}
	text, err := readProof(key)
	if err != nil {
		return err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return fmt.Errorf("%s has no key", key)
	}
	k, err := parseKey(block.Bytes)
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	signer, ok := k.(crypto.Signer)
	if !ok {
		return fmt.Errorf("%s: a key of type %T does not sign", key, k)
	}
	if pub, ok := signer.Public().(interface{ Equal(x crypto.PublicKey) bool }); !ok ||
		!pub.Equal(p.Certificates[0].PublicKey) {
		return fmt.Errorf("%s is not the key of the certificate", key)
	}
	p.Signer = signer
	return nil
}

func parseKey(der []byte) (any, error) {
	if k, err := x509.ParsePKCS1PrivateKey(der); err == nil {
		return k, nil
	}
	if k, err := x509.ParseECPrivateKey(der); err == nil {
		return k, nil
	}
	return x509.ParsePKCS8PrivateKey(der)
}

func readProof(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxProofFile+1))
	if err == nil && len(b) > maxProofFile {
		err = fmt.Errorf("%s has more than %d bytes", path, maxProofFile)
	}
	return b, err
}

// maxJoinToken is the largest size in bytes of a join token file.
const maxJoinToken = 1 << 10

// joinToken returns the token for the first sign-in, from join_token or the file join_token_file. A missing
// file is not an error, because it may be removed once the minion has joined.
func (l *link) joinToken(set *settings) string {
	token, path := set.optional("join_token"), set.optional("join_token_file")
	if token != "" || path == "" {
		return token
	}
	token, err := readToken(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		l.log.Error("The join token is not used", "option", "join_token_file", "err", err)
	}
	return token
}

// readToken reads a join token from a regular file that only its owner can read.
func readToken(path string) (string, error) {
	if info, err := os.Stat(path); err != nil {
		return "", err
	} else if !info.Mode().IsRegular() { // opening a pipe may block for ever
		return "", fmt.Errorf("%s is not a file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	if perm := info.Mode().Perm(); perm&0o077 != 0 && runtime.GOOS != "windows" {
		return "", fmt.Errorf("others can read %s (mode %04o): run chmod 0600", path, perm)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxJoinToken+1))
	token := strings.TrimSpace(string(b))
	switch {
	case err != nil:
		return "", err
	case len(b) > maxJoinToken:
		return "", fmt.Errorf("%s has more than %d bytes", path, maxJoinToken)
	case token == "" || strings.ContainsFunc(token,
		func(r rune) bool { return r <= ' ' || r > '~' }):
		return "", fmt.Errorf("%s has no token", path)
	}
	return token, nil
}

package main

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"

	"aead.dev/minisign"
	"golang.org/x/crypto/blake2b"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/brine-salt/brine/internal/signed"
)

// A signer creates signatures in minisign's format.
type signer struct {
	public minisign.PublicKey
	// signHash signs the hash of a file and the comments.
	signHash func(file *minisign.Reader, hash []byte, trusted, untrusted string) ([]byte, error)
}

func (s *signer) id() string { return fmt.Sprintf("%016X", s.public.ID()) }

// openSigner opens a private key in a file, or in an agent.
func openSigner(file, passwordFile, agentKey string) (*signer, error) {
	switch {
	case (file == "") == (agentKey == ""):
		return nil, errors.New("cannot sign: one of -key and -agent-key is needed")
	case agentKey != "":
		return openAgent(agentKey, os.Getenv("SSH_AUTH_SOCK"))
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("cannot read the private key: %w", err)
	}
	var priv minisign.PrivateKey
	if minisign.IsEncrypted(text) {
		if passwordFile == "" {
			return nil, fmt.Errorf("cannot read the private key %s: it has a password, and there is no -password-file", file)
		}
		password, err := os.ReadFile(passwordFile)
		if err != nil {
			return nil, fmt.Errorf("cannot read the password of the private key: %w", err)
		}
		if priv, err = minisign.DecryptKey(strings.TrimRight(string(password), "\r\n"), text); err != nil {
			return nil, fmt.Errorf("cannot read the private key %s: %w", file, err)
		}
	} else if err := priv.UnmarshalText(text); err != nil {
		return nil, fmt.Errorf("cannot read the private key %s: %w", file, err)
	}
	public := priv.Public().(minisign.PublicKey)
	return &signer{public: public, signHash: func(r *minisign.Reader, _ []byte, trusted, untrusted string) ([]byte, error) {
		return r.SignWithComments(priv, trusted, untrusted), nil
	}}, nil
}

// openAgent finds the private key for a public key in an agent.
func openAgent(publicFile, socket string) (*signer, error) {
	text, err := os.ReadFile(publicFile)
	if err != nil {
		return nil, fmt.Errorf("cannot read the public key: %w", err)
	}
	key, _, _, _, err := ssh.ParseAuthorizedKey(text)
	if err != nil {
		return nil, fmt.Errorf("cannot read the public key %s: %w", publicFile, err)
	}
	crypto, ok := key.(ssh.CryptoPublicKey)
	if !ok || key.Type() != ssh.KeyAlgoED25519 {
		return nil, fmt.Errorf("cannot sign with %s: it is not an ed25519 key", publicFile)
	}
	raw := crypto.CryptoPublicKey().(ed25519.PublicKey)
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return nil, fmt.Errorf("cannot reach the agent: %w", err)
	}
	client := agent.NewClient(conn)
	sign := func(message []byte) ([]byte, error) {
		sig, err := client.Sign(key, message)
		if err != nil {
			return nil, fmt.Errorf("the agent does not sign: %w", err)
		}
		if len(sig.Blob) != ed25519.SignatureSize {
			return nil, fmt.Errorf("the agent's signature has %d bytes", len(sig.Blob))
		}
		return sig.Blob, nil
	}
	// The number of a key made by minisign is random; this one is derived from the key.
	id := blake2b.Sum256(raw)
	public := publicKey(binary.LittleEndian.Uint64(id[:8]), raw)
	return &signer{public: public, signHash: func(_ *minisign.Reader, hash []byte, trusted, untrusted string) ([]byte, error) {
		s := minisign.Signature{Algorithm: minisign.HashEdDSA, KeyID: public.ID(), TrustedComment: trusted, UntrustedComment: untrusted}
		first, err := sign(hash)
		if err != nil {
			return nil, err
		}
		copy(s.Signature[:], first)
		second, err := sign(append(first, trusted...))
		if err != nil {
			return nil, err
		}
		copy(s.CommentSignature[:], second)
		return s.MarshalText()
	}}, nil
}

// publicKey converts a key to minisign's form.
func publicKey(id uint64, raw ed25519.PublicKey) minisign.PublicKey {
	b := binary.LittleEndian.AppendUint16(nil, minisign.EdDSA)
	b = binary.LittleEndian.AppendUint64(b, id)
	var k minisign.PublicKey
	if err := k.UnmarshalText([]byte(base64.StdEncoding.EncodeToString(append(b, raw...)))); err != nil {
		panic(err) // the length is right
	}
	return k
}

// signFile writes the signature file of a file. The signed comment contains the time of the commit, so that the same
// files have the same signatures.
func (s *signer) signFile(name string, epoch int64) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	h, err := blake2b.New512(nil)
	if err != nil {
		return err
	}
	r := minisign.NewReader(f)
	if _, err := io.Copy(h, r); err != nil {
		return err
	}
	trusted := fmt.Sprintf("timestamp:%d\tfile:%s\thashed", epoch, filepath.Base(name))
	text, err := s.signHash(r, h.Sum(nil), trusted, "signature of brine with the key "+s.id())
	if err != nil {
		return err
	}
	if !r.Verify(s.public, text) {
		return errors.New("its signature is not valid")
	}
	return os.WriteFile(name+signed.Suffix, append(bytes.TrimRight(text, "\n"), '\n'), 0o644)
}

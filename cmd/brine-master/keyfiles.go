package main

import (
	"encoding/base64"
	"fmt"
	"os"

	"github.com/brine-salt/brine/protocol/crypt"
)

// maxKeyFile limits the size of a key file. A key of 32768 bit RSA is smaller than 32 KiB.
const maxKeyFile = 64 << 10

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// readKeyFile returns the content of a key file, or an error if it is too large to be one.
func readKeyFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read key: %w", err)
	}
	if info.Size() > maxKeyFile {
		return nil, fmt.Errorf("cannot read key %q: %d bytes are not a public key", path, info.Size())
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read key: %w", err)
	}
	return b, nil
}

// writeNew creates a file with a mode. It fails if the file exists.
func writeNew(path string, data []byte, mode os.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return fmt.Errorf("cannot write key: %w", err)
	}
	_, err = f.Write(data)
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		return fmt.Errorf("cannot write key %q: %w", path, err)
	}
	return nil
}

// signPublicKey writes the signature of a public key to a file, as base64 with a final newline, in the form that
// masters send to minions (salt/crypt.py: gen_signature). It keeps an existing signature, and reports whether it
// wrote a new one.
func signPublicKey(priv, pub, path string) (bool, error) {
	text, err := readKeyFile(pub)
	if err != nil {
		return false, err
	}
	key, err := crypt.LoadPrivateKey(priv)
	if err != nil {
		return false, err
	}
	if isFile(path) {
		return false, nil
	}
	sig, err := key.Sign(crypt.PKCS1v15SHA1, []byte(crypt.CleanKey(string(text))))
	if err != nil {
		return false, err
	}
	return true, writeNew(path, []byte(base64.StdEncoding.EncodeToString(sig)+"\n"), 0o644)
}

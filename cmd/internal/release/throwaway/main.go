// Command throwaway writes a key pair for tests of releases to a directory: key and release.pub.
package main

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"

	"aead.dev/minisign"
)

func main() {
	if err := run(os.Args[len(os.Args)-1]); err != nil {
		fmt.Fprintln(os.Stderr, "throwaway:", err)
		os.Exit(1)
	}
}

func run(dir string) error {
	public, private, err := minisign.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	for name, key := range map[string]interface{ MarshalText() ([]byte, error) }{"key": private, "release.pub": public} {
		text, err := key.MarshalText()
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), append(text, '\n'), 0o600)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// packDocs writes docs.txt.gz beside each docs.txt of modules and states. It leaves a file that has the text already,
// since another version of Go may compress it otherwise.
func packDocs(root string) error {
	list, err := docsFiles(root)
	if err != nil {
		return err
	}
	for _, path := range list {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if have, err := unpack(path + ".gz"); err == nil && bytes.Equal(have, text) {
			continue
		}
		var packed bytes.Buffer
		z, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
		if err != nil {
			return err
		}
		if _, err := z.Write(text); err != nil {
			return err
		}
		if err := z.Close(); err != nil {
			return err
		}
		if err := os.WriteFile(path+".gz", packed.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// docsFiles returns the paths of the texts of documentation.
func docsFiles(root string) ([]string, error) {
	var list []string
	for _, w := range wings {
		some, err := filepath.Glob(filepath.Join(root, w.dir, "*", "docs.txt"))
		if err != nil {
			return nil, err
		}
		list = append(list, some...)
	}
	return list, nil
}

// unpack returns the content of a compressed file.
func unpack(path string) ([]byte, error) {
	packed, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", path, err)
	}
	return io.ReadAll(z)
}

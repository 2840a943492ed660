package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// compressAPK compresses the files of a package with libdeflate-gzip(1), a tenth smaller than nfpm does: apk-tools 2 reads
// nothing but gzip. The package is two gzip streams, of which the first, the control data, has the sum of the other one.
func compressAPK(name string) error {
	b, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	var contents [][]byte
	var sums []string
	for rest := b; len(rest) > 0; {
		content, size, err := gunzip(rest)
		if err != nil {
			return fmt.Errorf("stream at %d: %w", len(b)-len(rest), err)
		}
		contents, sums = append(contents, content), append(sums, hexSum(rest[:size]))
		rest = rest[size:]
	}
	if len(contents) != 2 {
		return fmt.Errorf("it has %d streams, not control data and files", len(contents))
	}
	cmd := exec.Command("libdeflate-gzip", "-12", "-c")
	cmd.Stdin, cmd.Stderr = bytes.NewReader(contents[1]), os.Stderr
	files, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("cannot run libdeflate-gzip (Debian: libdeflate-tools): %w", err)
	}
	// Both sums have the same length, so that no header of the archive changes.
	control := bytes.Replace(contents[0], []byte("datahash = "+sums[1]+"\n"), []byte("datahash = "+hexSum(files)+"\n"), 1)
	if bytes.Equal(control, contents[0]) {
		return fmt.Errorf("its control data has no sum of its files")
	}
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := z.Write(control); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	out.Write(files)
	return os.WriteFile(name, out.Bytes(), 0o644)
}

// gunzip returns the content of the stream that b begins with, and how many bytes of b it has.
func gunzip(b []byte) (content []byte, size int, err error) {
	all := bytes.NewReader(b)
	r := bufio.NewReader(all) // as a byte reader: gzip then reads no byte too many
	z, err := gzip.NewReader(r)
	if err != nil {
		return nil, 0, err
	}
	z.Multistream(false)
	content, err = io.ReadAll(z)
	return content, len(b) - all.Len() - r.Buffered(), err
}

func hexSum(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

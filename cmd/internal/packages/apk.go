package main

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// compressAPK compresses the files of a package with libdeflate-gzip(1), which results in a tenth less than nfpm's
// gzip; apk-tools 2 supports only gzip. The package consists of two gzip streams. The first, the control data,
// contains the checksum of the other.
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
	// Both checksums have the same length, so that no header of the archive changes.
	control := bytes.Replace(contents[0], []byte("datahash = "+sums[1]+"\n"), []byte("datahash = "+hexSum(files)+"\n"), 1)
	if bytes.Equal(control, contents[0]) {
		return fmt.Errorf("its control data has no sum of its files")
	}
	if control, err = withoutTimes(control); err != nil {
		return fmt.Errorf("control data: %w", err)
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

// withoutTimes sets the time of all files in control data to 1970. nfpm gives the package's scripts the times of
// their sources, which differ between checkouts, so that no two builds would be equal.
func withoutTimes(control []byte) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	// Control data has no end-of-archive marker, since the files follow.
	r := tar.NewReader(io.MultiReader(bytes.NewReader(control), bytes.NewReader(make([]byte, 1024))))
	for {
		h, err := r.Next()
		if err == io.EOF {
			if err := w.Flush(); err != nil {
				return nil, err
			}
			return out.Bytes(), nil
		}
		if err != nil {
			return nil, err
		}
		h.ModTime, h.Format, h.PAXRecords = time.Unix(0, 0), tar.FormatUSTAR, nil
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := io.Copy(w, r); err != nil {
			return nil, err
		}
	}
}

// gunzip returns the content of the first gzip stream in b, and its length in b.
func gunzip(b []byte) (content []byte, size int, err error) {
	all := bytes.NewReader(b)
	r := bufio.NewReader(all) // a byte reader, so that gzip does not read ahead
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

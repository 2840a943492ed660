package update

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/theupdateframework/go-tuf/v2/metadata"
)

// maxRedirects limits the redirects of a web server. Redirects need no other check: files are trusted because of
// their signatures, not because of their origin.
const maxRedirects = 3

// fetcher downloads files of a repository. ctx ends all downloads of a check, however slow each response is.
type fetcher struct {
	ctx context.Context
	// salt runs salt-call, for sources on a master.
	salt []string
	// dir is a directory for files that salt-call fetches. It is removed after the check.
	dir string
}

// DownloadFile implements go-tuf's Fetcher. It returns an error for files of more than maxLength bytes, without
// reading more.
func (f fetcher) DownloadFile(address string, maxLength int64, _ time.Duration) ([]byte, error) {
	if strings.HasPrefix(address, "salt://") {
		return f.downloadSalt(address, maxLength)
	}
	client := http.Client{CheckRedirect: func(_ *http.Request, via []*http.Request) error {
		if len(via) > maxRedirects {
			return fmt.Errorf("more than %d redirects", maxRedirects)
		}
		return nil
	}}
	request, err := http.NewRequestWithContext(f.ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	answer, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, &metadata.ErrDownloadHTTP{StatusCode: answer.StatusCode, URL: address}
	}
	if answer.ContentLength > maxLength {
		return nil, tooLong(address, maxLength)
	}
	return readLimited(answer.Body, address, maxLength)
}

// readLimited reads all of r. It returns an error if r has more bytes than limit.
func readLimited(r io.Reader, address string, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = tooLong(address, limit)
	}
	if err != nil {
		return nil, err
	}
	return data, nil
}

func tooLong(address string, limit int64) error {
	return &metadata.ErrDownloadLengthMismatch{Msg: fmt.Sprintf("%s has more than %d bytes", address, limit)}
}

// noFile is the result of cp.get_url if the master does not have the file.
const noFile = "False"

// fileBlock is the unit of the shell's limit for the size of files.
const fileBlock = 512

// downloadSalt fetches a file from the master with salt-call. A limit of the shell (ulimit) restricts its size on
// disk.
func (f fetcher) downloadSalt(address string, maxLength int64) ([]byte, error) {
	path, err := url.PathUnescape(address) // salt:// has no escapes
	if err != nil {
		return nil, err
	}
	to := filepath.Join(f.dir, "fetched")
	defer os.Remove(to)
	script := fmt.Sprintf(`ulimit -f %d; exec "$@"`, maxLength/fileBlock+2)
	args := append([]string{"-c", script, "sh"}, f.salt...)
	cmd := exec.CommandContext(f.ctx, "/bin/sh", append(args, "--out=newline_values_only", "cp.get_url", path, to)...)
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	file, openErr := os.Open(to)
	switch {
	case f.ctx.Err() != nil:
		return nil, f.ctx.Err()
	case err == nil && strings.TrimSpace(string(out)) == noFile, err == nil && errors.Is(openErr, os.ErrNotExist):
		return nil, &metadata.ErrDownloadHTTP{StatusCode: http.StatusNotFound, URL: address}
	case openErr == nil:
		defer file.Close()
		data, readErr := readLimited(file, address, maxLength)
		if err == nil || readErr != nil {
			return data, readErr
		}
	}
	return nil, fmt.Errorf("salt-call cannot fetch %s: %w%s", address, err, exitText(err))
}

// exitText returns the standard error of a failed program, shortened.
func exitText(err error) string {
	var exit *exec.ExitError
	if !errors.As(err, &exit) || len(exit.Stderr) == 0 {
		return ""
	}
	text := strings.TrimSpace(string(exit.Stderr))
	return ": " + text[:min(len(text), 500)]
}

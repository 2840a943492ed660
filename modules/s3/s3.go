// Package s3 is Salt's execution module "s3": buckets and objects of Amazon S3, and of storage that speaks its interface.
//
// Salt's sources: salt/modules/s3.py, salt/utils/s3.py and sig4 of salt/utils/aws.py.
package s3

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/atomicfile"
	"github.com/brine-salt/brine/internal/modkit/xmldict"
	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

const (
	// maxBody bounds what is read of an answer that is not saved as a file.
	maxBody = 64 << 20
	// maxWait is how long the server may take to begin its answer.
	maxWait = 300 * time.Second
)

// request is a call of the interface.
type request struct {
	*modules.Call
	ctx            context.Context
	path, file     string // the path of the object as the server sees it, "" for that of a bucket
	bucket         string
	transport      *http.Transport
	status         int
	header         http.Header
	content        []byte
	code, complain string // what an answer says that is an error
}

// setting returns an argument, or if that is not set the option in its place.
func (r *request) setting(name, option string) (any, error) {
	if v := r.Value(name); v != nil && v != "" {
		return v, nil
	}
	v, err := r.Exec(r.ctx, "config.option", option)
	if v == "" {
		v = nil
	}
	return v, err
}

// quote implements urllib.parse.quote of a path.
func quote(path string) string { return strings.ReplaceAll(url.PathEscape(path), "%2F", "/") }

// do sends a request with a method and reads the answer. An object that is to be saved is saved.
func do(ctx context.Context, c *modules.Call, method string) (*request, error) {
	r := &request{Call: c, ctx: ctx, path: c.Str("path"), bucket: c.Str("bucket")}
	if method == http.MethodGet || method == http.MethodPut {
		r.file = c.Str("local_file")
	}
	var set [8]any
	for i, s := range [...][2]string{{"key", "s3.key"}, {"keyid", "s3.keyid"}, {"service_url", "s3.service_url"}, {"location", "s3.location"},
		{"kms_keyid", "aws.kms.keyid"}, {"role_arn", "s3.role_arn"}, {"verify_ssl", "s3.verify_ssl"}, {"https_enable", "s3.https_enable"}} {
		var err error
		if set[i], err = r.setting(s[0], s[1]); err != nil {
			return nil, err
		}
	}
	pathStyle, err := r.setting("path_style", "s3.path_style")
	switch {
	case err != nil:
		return nil, err
	case set[5] != nil:
		return nil, modules.Usagef("cannot assume the role %s: role_arn is not supported", pytext.Str(set[5]))
	case set[0] == nil || set[1] == nil:
		return nil, modules.Usagef("cannot ask S3 without a key: give key and keyid, or set s3.key and s3.keyid")
	}
	host, path, location := "s3.amazonaws.com", r.path, "us-east-1"
	if set[2] != nil {
		host = pytext.Str(set[2])
	}
	if set[3] != nil {
		location = pytext.Str(set[3])
	}
	if r.bucket != "" {
		if !pytext.Truth(pathStyle) {
			host = r.bucket + "." + host
		} else if path = r.bucket; r.path != "" {
			r.path = path + "/" + r.path
			path = r.path
		}
	}
	to := &url.URL{Scheme: "https", Host: host, Path: "/" + path, RawPath: "/" + quote(path)}
	r.transport = &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, MaxResponseHeaderBytes: 1 << 20, ResponseHeaderTimeout: maxWait}
	if set[7] != nil && !pytext.Truth(set[7]) {
		to.Scheme = "http"
	}
	if set[6] == false {
		r.transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true}
	}
	req, err := http.NewRequestWithContext(ctx, method, to.String(), nil)
	if err != nil {
		return nil, modules.Errorf("cannot ask S3: %s", err)
	}
	digest := sha256.New()
	if method == http.MethodPut {
		if set[4] != nil {
			req.Header.Set("X-Amz-Server-Side-Encryption", "aws:kms")
			req.Header.Set("X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id", pytext.Str(set[4]))
		}
		if r.file != "" {
			f, err := os.Open(c.Path(r.file))
			if err != nil {
				return nil, modules.OSError(err)
			}
			defer f.Close()
			if req.ContentLength, err = io.Copy(digest, f); err != nil {
				return nil, modules.OSError(err)
			}
			if _, err := f.Seek(0, io.SeekStart); err != nil {
				return nil, modules.OSError(err)
			}
			if req.ContentLength > 0 {
				req.Body = io.NopCloser(f)
			}
		}
	}
	sign(req, c.Now(), pytext.Str(set[1]), pytext.Str(set[0]), location, hex.EncodeToString(digest.Sum(nil)))
	return r, r.send(req)
}

func (r *request) send(req *http.Request) error {
	resp, err := r.transport.RoundTrip(req)
	if err != nil {
		return modules.Errorf("cannot ask S3: %s %s: %s", req.Method, req.URL, err)
	}
	defer resp.Body.Close()
	r.status, r.header = resp.StatusCode, resp.Header
	if req.Method == http.MethodGet && r.file != "" && r.status/100 == 2 {
		return r.save(resp.Body)
	}
	r.content, err = io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	switch {
	case err != nil:
		return modules.Errorf("cannot read the answer of S3: %s", err)
	case len(r.content) > maxBody:
		return modules.Errorf("the answer of S3 is larger than %d bytes: save it by local_file", maxBody)
	case r.status < 400:
		return nil
	}
	r.code, r.complain = "http-"+pytext.Str(int64(r.status)), "Unknown error"
	if len(r.content) > 0 {
		r.complain = pytext.Bytes(r.content)
	}
	if root, err := xmldict.Parse(string(r.content)); err == nil {
		m := root.Data()
		if m["Code"] != nil && m["Message"] != nil {
			r.code, r.complain = pytext.Str(m["Code"]), pytext.Str(m["Message"])
		}
	}
	return nil
}

// save writes an object to the local file. The file is replaced once the object is complete.
func (r *request) save(body io.Reader) error {
	if err := atomicfile.ReplaceFrom(r.Path(r.file), body, 0o644); err != nil {
		return modules.Errorf("cannot save %s: %s", r.file, err)
	}
	return nil
}

// failed returns the error for a request that the server refused.
func (r *request) failed(what string) error {
	return modules.Errorf("%s. %s: %s", what, r.code, r.complain)
}

func put(ctx context.Context, c *modules.Call) (any, error) {
	r, err := do(ctx, c, http.MethodPut)
	switch {
	case err != nil || r.status == http.StatusOK:
		return nil, err
	case r.file != "":
		return nil, r.failed("Failed to upload from " + r.file + " to " + quote(r.path))
	}
	return nil, r.failed("Failed to create bucket " + r.bucket)
}

func remove(ctx context.Context, c *modules.Call) (any, error) {
	r, err := do(ctx, c, http.MethodDelete)
	switch {
	case err != nil || r.status/100 == 2:
		return nil, err
	case r.path != "":
		return nil, r.failed("Failed to delete " + quote(r.path) + " from bucket " + r.bucket)
	}
	return nil, r.failed("Failed to delete bucket " + r.bucket)
}

func get(ctx context.Context, c *modules.Call) (any, error) {
	r, err := do(ctx, c, http.MethodGet)
	switch {
	case err != nil:
		return nil, err
	case r.status/100 != 2 && r.file != "":
		return nil, r.failed("Failed to get file")
	case r.status/100 != 2:
		return nil, r.failed("Failed s3 operation")
	case r.file != "":
		return "Saved to local file: " + r.file, nil
	case c.Bool("return_bin"):
		return r.content, nil
	case len(r.content) == 0:
		return map[string]any{"headers": nested.Anys(slices.Sorted(maps.Keys(r.header)))}, nil
	}
	root, err := xmldict.Parse(string(r.content))
	if err != nil {
		return nil, &modules.PythonError{Type: "xml.etree.ElementTree.ParseError", Msg: "the object is no XML (return_bin or local_file take any): " + err.Error()}
	}
	return root.Children(), nil
}

func head(ctx context.Context, c *modules.Call) (any, error) {
	r, err := do(ctx, c, http.MethodHead)
	if err != nil {
		return nil, err
	}
	if r.status/100 != 2 {
		return nil, r.failed("Failed s3 operation")
	}
	headers := map[string]any{}
	for name, values := range r.header {
		headers[name] = strings.Join(values, ", ")
	}
	return map[string]any{"headers": headers}, nil
}

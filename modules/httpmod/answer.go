package httpmod

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/atomicfile"
	"github.com/brine-salt/brine/internal/modkit/pyhttp"
	"github.com/brine-salt/brine/internal/modkit/xmldict"
	"github.com/brine-salt/brine/internal/python/pyjson"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/python/yaml"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
)

// plain converts a rendered value to plain types.
func plain(v any) any { return pyobj.Plain(v) }

// answer fills the result from the server's answer.
func (q *query) answer(ret map[string]any, resp *http.Response, body []byte) error {
	text := q.decoded(resp, body)
	ret["body"] = text
	if (resp.StatusCode < 200 || resp.StatusCode >= 300) && q.is("raise_error", true) {
		ret["status"] = int64(resp.StatusCode)
		ret["error"] = pyhttp.Status(resp)
		return nil
	}
	headers := map[string]any{}
	for name, values := range resp.Header {
		headers[name] = strings.Join(values, ",")
	}
	if file := q.value("text_out"); file != nil {
		if err := q.write(pytext.Str(file), pytext.Str(text)); err != nil {
			return err
		}
	}
	if file := q.value("headers_out"); file != nil {
		if _, err := os.Stat(q.c.Path(pytext.Str(file))); err == nil { // Salt writes to a file that is there only
			var b strings.Builder
			if err := resp.Header.Write(&b); err != nil {
				return err
			}
			if err := q.write(pytext.Str(file), strings.ReplaceAll(b.String(), "\r\n", "\n")); err != nil {
				return err
			}
		}
	}
	if q.is("status", false) {
		ret["status"] = int64(resp.StatusCode)
	}
	if q.is("headers", false) {
		ret["headers"] = headers
	}
	withText := q.is("text", false)
	if q.is("decode", false) {
		more, err := q.decode(ret, resp, text)
		if err != nil {
			return err
		}
		if _, failed := ret["error"]; failed {
			return nil
		}
		withText = withText || more
	}
	if withText {
		ret["text"] = text
	}
	return nil
}

// decode puts the body's data into the result; plain says that it has none but its text.
func (q *query) decode(ret map[string]any, resp *http.Response, text any) (plainText bool, err error) {
	kind := q.text("decode_type")
	if kind == "" || kind == "auto" {
		content := resp.Header.Get("Content-Type")
		switch {
		case content == "", strings.Contains(content, "json") && !strings.Contains(content, "xml"):
			kind = "json"
		case strings.Contains(content, "xml"):
			kind = "xml"
		case strings.Contains(content, "yaml"):
			kind = "yaml"
		default:
			kind = "plain"
		}
	}
	source := pytext.Str(text)
	switch kind {
	case "json":
		if ret["dict"], err = pyjson.Parse([]byte(source)); err != nil {
			return false, modules.Errorf("%s", err)
		}
	case "yaml":
		if ret["dict"], err = yaml.Parse([]byte(source), "<unicode string>"); err != nil {
			return false, modules.Errorf("%s", err)
		}
	case "xml":
		root, err := xmldict.Parse(source)
		if err != nil {
			return false, modules.Errorf("%s", err)
		}
		ret["dict"] = root.Children()
	case "plain":
		plainText = true
	default:
		ret["error"] = "Invalid decode_type specified. Valid decode types are: ('json', 'xml', 'yaml', 'plain')"
		return false, nil
	}
	if file := q.value("decode_out"); file != nil {
		return plainText, q.write(pytext.Str(file), source)
	}
	return plainText, nil
}

func (q *query) write(path, text string) error {
	if err := atomicfile.WriteFile(q.c.Path(path), []byte(text), 0o644); err != nil {
		return modules.OSError(err)
	}
	return nil
}

func waitFor(ctx context.Context, c *modules.Call) (any, error) {
	limit, err := c.Seconds("wait_for")
	if err != nil {
		return nil, err
	}
	q := newQuery(c)
	pause := time.Duration(0)
	if v, ok := q.args["request_interval"]; ok {
		f, err := strconv.ParseFloat(pytext.Str(v), 64)
		if err != nil {
			return nil, &modules.TypeError{Msg: "request_interval must be a number"}
		}
		pause = time.Duration(min(max(f, 0), 1e6) * float64(time.Second))
	}
	// Without a pause stock repeats requests as fast as it can, to no benefit.
	pause = max(pause, 10*time.Millisecond)
	for end := c.Now().Add(limit); ; {
		ret, err := q.run(ctx)
		if err == nil && !pytext.Truth(ret["error"]) {
			return ret, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if c.Now().After(end) {
			if err != nil {
				return nil, err
			}
			return ret, nil
		}
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return nil, ctx.Err()
		}
	}
}

// bundles returns the usual paths of the host's certificate authorities.
func bundles() []string {
	return []string{"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/pki/tls/certs/ca-bundle.trust.crt",
		"/etc/ssl/certs/ca-bundle.crt", "/var/lib/ca-certificates/ca-bundle.pem", "/etc/ssl/cert.pem"}
}

func updateBundle(ctx context.Context, c *modules.Call) (any, error) {
	q := &query{c: c, args: map[string]any{"raise_error": true}}
	target, source := c.Str("target"), c.Str("source")
	if target == "" {
		target, _ = c.Opt("ca_bundle").(string)
	}
	for _, path := range bundles() {
		if _, err := os.Stat(c.Path(path)); err == nil && target == "" {
			target = path
		}
	}
	if target == "" {
		c.Logger().Error("Unable to detect location to write CA bundle to")
		return nil, nil
	}
	if source == "" {
		if source, _ = c.Opt("ca_bundle_url").(string); source == "" {
			source = "https://curl.se/ca/cacert.pem"
		}
	}
	q.url = source
	ret, err := q.run(ctx)
	if err != nil {
		return nil, err
	}
	text, _ := ret["body"].(string)
	if ret["error"] != nil || !strings.Contains(text, "-----BEGIN CERTIFICATE-----") {
		return nil, modules.Errorf("cannot fetch certificates from %s: %s", source, pytext.Str(ret["error"]))
	}
	var b bytes.Buffer
	b.WriteString(text)
	for _, file := range c.Strings("merge_files") {
		more, err := os.ReadFile(c.Path(file))
		if err != nil {
			c.Logger().Error("Cannot add certificates", "file", file, "err", err)
			continue
		}
		b.WriteByte('\n')
		b.Write(more)
	}
	if _, err := os.Stat(filepath.Dir(c.Path(target))); err != nil {
		return nil, modules.OSError(err)
	}
	return nil, q.write(target, b.String())
}

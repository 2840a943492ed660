package httpmod

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/certpool"
	"github.com/brine-salt/brine/internal/conf"
	"github.com/brine-salt/brine/internal/httpproxy"
	"github.com/brine-salt/brine/internal/modkit/pyhttp"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/version"
	"github.com/brine-salt/brine/modules"
)

// maxBody bounds what is kept of an answer, whatever http_max_body allows: Salt's own default is 100 GiB.
const maxBody = 256 << 20

// query is one request.
type query struct {
	c    *modules.Call
	url  string
	args map[string]any
}

func (q *query) value(name string) any { return q.args[name] }

func (q *query) text(name string) string {
	if v := q.args[name]; v != nil {
		return pytext.Str(v)
	}
	return ""
}

func (q *query) is(name string, other bool) bool {
	if v, ok := q.args[name]; ok && v != nil {
		return pytext.Truth(v)
	}
	return other
}

func newQuery(c *modules.Call) *query {
	q := &query{c: c, url: c.Str("url"), args: map[string]any{}}
	for k, v := range c.Keywords {
		if !strings.HasPrefix(k, "__pub_") {
			q.args[k] = v
		}
	}
	return q
}

// opt returns an option of the minion. The argument opts overrides it.
func (q *query) opt(name string) any {
	if over, ok := q.args["opts"].(map[string]any); ok {
		if v, ok := over[name]; ok {
			return v
		}
	}
	return q.c.Opt(name)
}

// seconds returns an option that is a number of seconds. If it is not a number, the default of the table of options
// applies.
func (q *query) seconds(name string) time.Duration {
	for _, v := range [...]any{q.opt(name), conf.Default("minion", name)} {
		f, ok := v.(float64)
		if n, whole := v.(int64); whole {
			f, ok = float64(n), true
		}
		if ok {
			return time.Duration(min(max(f, 0), 1e6) * float64(time.Second))
		}
	}
	return 0
}

func runQuery(ctx context.Context, c *modules.Call) (any, error) { return newQuery(c).run(ctx) }

// run sends the request.
func (q *query) run(ctx context.Context) (map[string]any, error) {
	for _, name := range [...]string{"cookies", "persist_session", "stream", "handle"} {
		if pytext.Truth(q.value(name)) {
			return nil, modules.Errorf("http.query cannot do %s here", name)
		}
	}
	ret := map[string]any{}
	address := q.url
	if q.is("test", false) {
		if q.value("test_url") == nil {
			return ret, nil
		}
		address = q.text("test_url")
		ret["test"] = true
	}
	req, err := q.request(ctx, address)
	if err != nil {
		return nil, err
	}
	client, err := q.client()
	if err != nil {
		return nil, err
	}
	defer client.CloseIdleConnections()
	resp, err := client.Do(req)
	if err != nil {
		return q.unreachable(ctx, ret, err)
	}
	defer resp.Body.Close()
	body, err := q.read(resp)
	if err != nil {
		return q.unreachable(ctx, ret, err)
	}
	return ret, q.answer(ret, resp, body)
}

// unreachable returns the result for a request that got no answer.
func (q *query) unreachable(ctx context.Context, ret map[string]any, err error) (map[string]any, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	ret["error"] = pyhttp.Error(err)
	if pyhttp.IsTimeout(err) {
		ret["status"] = int64(599)
		return ret, nil
	}
	if q.is("status", false) {
		ret["status"] = int64(0)
	}
	return ret, nil
}

// request makes the request.
func (q *query) request(ctx context.Context, address string) (*http.Request, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, modules.Errorf("Unsupported url scheme: %s", address)
	}
	if params, ok := q.value("params").(map[string]any); ok {
		query := u.Query()
		for k, v := range params {
			query.Add(k, pytext.Str(v))
		}
		u.RawQuery = query.Encode()
	}
	body, kind, err := q.body(ctx)
	if err != nil {
		return nil, err
	}
	method := q.text("method")
	if method == "" {
		method = http.MethodGet
	}
	var r io.Reader
	if body != nil {
		r = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, u.String(), r)
	if err != nil {
		return nil, modules.Errorf("%s", err)
	}
	headers, err := q.headers(ctx)
	if err != nil {
		return nil, err
	}
	agent := q.text("agent")
	if agent == "" {
		agent = "Salt/" + version.Salt + " http.query()"
	}
	req.Header.Set("User-Agent", agent)
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	for _, h := range headers {
		if strings.EqualFold(h[0], "Host") {
			req.Host = h[1]
		} else {
			req.Header.Set(h[0], h[1])
		}
	}
	if body != nil && method == http.MethodPost && req.Header.Get("Content-Type") == "" {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded") // as tornado does
	}
	user, password := q.value("username"), q.value("password")
	if auth, ok := q.value("auth").([]any); ok && len(auth) == 2 && user == nil {
		user, password = auth[0], auth[1]
	}
	if pytext.Truth(user) && password != nil {
		req.SetBasicAuth(pytext.Str(user), pytext.Str(password))
	}
	return req, nil
}

// body returns the body of the request. kind is its content type if that follows from the arguments.
func (q *query) body(ctx context.Context) (body []byte, kind string, err error) {
	data := q.value("data")
	if file := q.value("data_file"); file != nil {
		if data, err = q.file(ctx, pytext.Str(file), "data"); err != nil {
			return nil, "", err
		}
	}
	if q.is("formdata", false) {
		name := q.text("formdata_fieldname")
		if name == "" {
			return nil, "", modules.Errorf("formdata_fieldname is required when formdata=True")
		}
		var b bytes.Buffer
		form := multipart.NewWriter(&b)
		part, err := form.CreateFormFile(name, q.text("formdata_filename"))
		if err == nil {
			_, err = io.WriteString(part, pytext.Str(data))
		}
		if err == nil {
			err = form.Close()
		}
		return b.Bytes(), form.FormDataContentType(), err
	}
	switch d := data.(type) {
	case nil:
		return nil, "", nil
	case map[string]any:
		form := url.Values{}
		for k, v := range d {
			form.Add(k, pytext.Str(v))
		}
		return []byte(form.Encode()), "", nil
	case []byte:
		return d, "", nil
	}
	return []byte(pytext.Str(data)), "", nil
}

// file reads a file of the host, through the renderers if the arguments <what>_render and <what>_renderer say so.
func (q *query) file(ctx context.Context, path, what string) (any, error) {
	b, err := os.ReadFile(q.c.Path(path))
	if err != nil {
		return nil, modules.OSError(err)
	}
	if !q.is(what+"_render", false) {
		return string(b), nil
	}
	vars, _ := q.value("template_dict").(map[string]any)
	v, err := q.c.Template(ctx, modules.Template{Text: string(b), Pipe: q.text(what + "_renderer"), Shebang: true, Path: path, Vars: vars})
	if err != nil {
		return nil, modules.Errorf("%s", err)
	}
	return plain(v), nil
}

// headers returns the headers that the arguments set, sorted by name.
func (q *query) headers(ctx context.Context) ([][2]string, error) {
	from := map[string]string{}
	list := q.value("header_list")
	dict, _ := q.value("header_dict").(map[string]any)
	if file := q.value("header_file"); file != nil {
		v, err := q.file(ctx, pytext.Str(file), "header")
		if err != nil {
			return nil, err
		}
		if m, ok := v.(map[string]any); ok {
			dict = m
		} else {
			list = strings.Split(strings.TrimSpace(pytext.Str(v)), "\n")
		}
	}
	for k, v := range dict {
		from[k] = pytext.Str(v)
	}
	var lines []string
	switch l := list.(type) {
	case []string:
		lines = l
	case []any:
		for _, x := range l {
			lines = append(lines, pytext.Str(x))
		}
	}
	for _, line := range lines {
		// Salt takes what is between the first and the second colon; a value with a colon in it is kept whole here.
		if k, v, ok := strings.Cut(line, ":"); ok {
			from[strings.TrimSpace(k)] = strings.TrimSpace(v)
		}
	}
	var out [][2]string
	for _, k := range slices.Sorted(maps.Keys(from)) {
		if k == "" || strings.ContainsAny(k+from[k], "\r\n\x00") {
			return nil, modules.Errorf("cannot send the header %q: it has a line end in it, or no name", k)
		}
		out = append(out, [2]string{k, from[k]})
	}
	return out, nil
}

// client returns an HTTP client for the options and arguments.
func (q *query) client() (*http.Client, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	verify := q.value("verify_ssl")
	if verify == nil {
		verify = q.opt("verify_ssl")
	}
	config.InsecureSkipVerify = verify != nil && !pytext.Truth(verify)
	bundle := q.text("ca_bundle")
	if bundle == "" {
		bundle, _ = q.opt("ca_bundle").(string)
	}
	if bundle != "" {
		var err error
		if config.RootCAs, err = certpool.Read(q.c.Path(bundle)); err != nil {
			return nil, modules.FileError(err)
		}
	}
	if err := q.certificate(config); err != nil {
		return nil, err
	}
	transport := &http.Transport{TLSClientConfig: config, TLSHandshakeTimeout: q.seconds("http_connect_timeout"), Proxy: httpproxy.Options(q.opt), DisableCompression: true,
		DialContext: (&net.Dialer{Timeout: q.seconds("http_connect_timeout")}).DialContext, MaxResponseHeaderBytes: 1 << 20}
	return &http.Client{Transport: transport, Timeout: q.seconds("http_request_timeout"), CheckRedirect: func(req *http.Request, via []*http.Request) error {
		if len(via) > 5 {
			return http.ErrUseLastResponse // tornado's max_redirects
		}
		return nil
	}}, nil
}

// certificate loads the client's certificate: one file with both, or certificate and key.
func (q *query) certificate(config *tls.Config) error {
	cert := q.value("cert")
	if cert == nil {
		cert = q.opt("cert")
	}
	var files []string
	switch v := cert.(type) {
	case string:
		files = []string{v, v}
	case []any:
		for _, x := range v {
			files = append(files, pytext.Str(x))
		}
	}
	if len(files) < 2 || files[0] == "" {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(q.c.Path(files[0]), q.c.Path(files[1]))
	if err != nil {
		return modules.Errorf("The client-side certificate path that was passed is not valid: %s", err)
	}
	config.Certificates = []tls.Certificate{pair}
	return nil
}

// read reads the body, unpacked.
func (q *query) read(resp *http.Response) ([]byte, error) {
	limit := int64(maxBody)
	if n, ok := q.opt("http_max_body").(int64); ok && n > 0 {
		limit = min(limit, n)
	}
	var r io.Reader = resp.Body
	switch coding := resp.Header.Get("Content-Encoding"); coding {
	case "gzip":
		z, err := gzip.NewReader(resp.Body)
		if errors.Is(err, io.EOF) {
			return nil, nil // no body, as for HEAD
		}
		if err != nil {
			return nil, err
		}
		r = z
	case "deflate":
		r = flate.NewReader(resp.Body)
	}
	b, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = fmt.Errorf("the answer has more than %d bytes", limit)
	}
	return b, err
}

// decoded is the body as text, unless it is to stay bytes.
func (q *query) decoded(resp *http.Response, body []byte) any {
	if !q.is("decode_body", true) {
		return body
	}
	kind, params, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err == nil && strings.HasPrefix(kind, "text/") {
		switch strings.ToLower(params["charset"]) {
		case "iso-8859-1", "latin-1", "latin1":
			runes := make([]rune, len(body))
			for i, c := range body {
				runes[i] = rune(c)
			}
			return string(runes)
		}
	}
	return strings.ToValidUTF8(string(body), "�")
}

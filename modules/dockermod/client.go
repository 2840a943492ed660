package dockermod

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/certpool"
	"github.com/brine-salt/brine/internal/modkit/nss"
	"github.com/brine-salt/brine/internal/python/pyjson"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

const (
	maxBody   = 64 << 20 // of an answer in JSON
	maxEvent  = 1 << 20  // of a line of a stream of events
	maxEvents = 1 << 16  // of a stream
	maxOutput = 16 << 20 // of a log, and of each stream of a command

	defaultSocket = "/var/run/docker.sock"
	// defaultTimeout is docker-py's for an answer.
	defaultTimeout = 60 * time.Second
)

// client speaks to a Docker daemon for one call of a function.
type client struct {
	ctx context.Context // of the call
	*modules.Call
	http *http.Client
	// base begins every URL, where names the daemon in errors.
	base, where string
	timeout     time.Duration
	// config is the content of Docker's config.json, at the path file.
	config map[string]any
	file   string
}

// option returns a setting of the configuration, grains or pillar, or nil if it is not set (config.option).
func option(c *modules.Call, name string) any {
	pillar := c.PillarData()
	master, _ := pillar["master"].(map[string]any)
	for _, m := range [...]map[string]any{c.Config(), c.GrainData(), pillar, master} {
		if v, ok := m[name]; ok {
			return v
		}
	}
	return nil
}

// dockerError returns one of docker-py's exceptions that Salt does not convert.
func dockerError(format string, args ...any) error {
	return &modules.PythonError{Type: "docker.errors.DockerException", Msg: fmt.Sprintf(format, args...)}
}

// connect makes the client for the daemon that the option docker.url names, or the variable DOCKER_HOST.
func connect(ctx context.Context, c *modules.Call) (*client, error) {
	if v := option(c, "docker.machine"); v != nil {
		return nil, modules.Errorf("cannot use docker.machine %s: docker-machine is not supported, name the daemon by docker.url", pytext.Str(v))
	}
	d := &client{ctx: ctx, Call: c, timeout: defaultTimeout}
	if v := c.Value("client_timeout"); v != nil {
		seconds, err := c.Seconds("client_timeout")
		if err != nil {
			return nil, err
		}
		d.timeout = seconds
	}
	host, _ := c.Context().Getenv("DOCKER_HOST")
	if v := option(c, "docker.url"); v != nil {
		host = pytext.Str(v)
	}
	d.readConfig()
	if err := d.dial(strings.TrimSpace(host)); err != nil {
		return nil, err
	}
	if v := option(c, "docker.version"); v != nil && !strings.EqualFold(pytext.Str(v), "auto") {
		d.base += "/v" + pytext.Str(v)
	}
	return d, nil
}

// dial prepares connections to an address as docker-py reads it (parse_host).
func (d *client) dial(host string) error {
	scheme, rest, ok := strings.Cut(host, "://")
	if !ok {
		scheme, rest = "tcp", host
	}
	if host == "" || scheme == "unix" && rest == "" {
		scheme, rest = "unix", defaultSocket
	}
	transport := &http.Transport{MaxResponseHeaderBytes: 1 << 20, DisableKeepAlives: true}
	d.http = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	switch scheme {
	case "unix", "http+unix":
		path := "/" + strings.TrimLeft(rest, "/")
		d.where, d.base = "unix://"+path, "http://localhost"
		socket := d.Path(path)
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			var dialer net.Dialer
			return dialer.DialContext(ctx, "unix", socket)
		}
		return nil
	case "tcp", "http", "https":
	default:
		return dockerError("Invalid bind address protocol: %s", host)
	}
	u, err := url.Parse("http://" + rest)
	if err != nil || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return dockerError("Invalid bind address format: %s", host)
	}
	if u.Port() == "" {
		return dockerError("Invalid bind address format: port is required: %s", host)
	}
	if u.Hostname() == "" {
		u.Host = "127.0.0.1" + u.Host
	}
	verify, _ := d.Context().Getenv("DOCKER_TLS_VERIFY")
	if scheme == "https" || scheme == "tcp" && verify != "" {
		u.Scheme = "https"
		if transport.TLSClientConfig, err = d.secured(verify != ""); err != nil {
			return err
		}
	}
	d.where = host
	d.base = strings.TrimRight(u.String(), "/")
	return nil
}

// secured returns the TLS configuration: ca.pem, cert.pem and key.pem in DOCKER_CERT_PATH, or, if want is set, in
// ~/.docker like the program docker. The daemon's certificate is always verified.
func (d *client) secured(want bool) (*tls.Config, error) {
	dir, _ := d.Context().Getenv("DOCKER_CERT_PATH")
	if dir == "" && want {
		dir = filepath.Dir(d.file)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if dir == "" {
		return config, nil
	}
	at := func(name string) string { return d.Path(filepath.Join(dir, name)) }
	var err error
	if config.RootCAs, err = certpool.Read(at("ca.pem")); err != nil {
		return nil, modules.Errorf("cannot read the authority of Docker's certificate: %s", err)
	}
	pair, err := tls.LoadX509KeyPair(at("cert.pem"), at("key.pem"))
	if errors.Is(err, os.ErrNotExist) {
		return config, nil
	}
	if err != nil {
		return nil, modules.Errorf("cannot use the client's certificate in %s: %s", dir, err)
	}
	config.Certificates = []tls.Certificate{pair}
	return config, nil
}

// routes are the requests by the name of docker-py's function: the method and the path, where % stands for the resource.
const routes = `
auth POST /auth
build POST /build
commit POST /commit
connect_container_to_network POST /networks/%/connect
containers GET /containers/json
create_container POST /containers/create
create_network POST /networks/create
create_volume POST /volumes/create
diff GET /containers/%/changes
disconnect_container_from_network POST /networks/%/disconnect
exec_create POST /containers/%/exec
exec_inspect GET /exec/%/json
exec_start POST /exec/%/start
export GET /containers/%/export
get_archive GET /containers/%/archive
history GET /images/%/history
images GET /images/json
import_image POST /images/create
info GET /info
inspect_container GET /containers/%/json
inspect_image GET /images/%/json
inspect_network GET /networks/%
inspect_volume GET /volumes/%
kill POST /containers/%/kill
load_image POST /images/load
logs GET /containers/%/logs
networks GET /networks
pause POST /containers/%/pause
prune_build POST /build/prune
prune_containers POST /containers/prune
prune_images POST /images/prune
prune_networks POST /networks/prune
prune_volumes POST /volumes/prune
pull POST /images/create
push POST /images/%/push
remove_container DELETE /containers/%
remove_image DELETE /images/%
remove_network DELETE /networks/%
remove_volume DELETE /volumes/%
rename POST /containers/%/rename
restart POST /containers/%/restart
save_image GET /images/%/get
search GET /images/search
start POST /containers/%/start
stop POST /containers/%/stop
tag POST /images/%/tag
top GET /containers/%/top
unpause POST /containers/%/unpause
version GET /version
volumes GET /volumes
wait POST /containers/%/wait
`

// request holds the parts of a request besides its route.
type request struct {
	id     any            // the resource
	query  map[string]any // None is left out
	body   any            // an io.Reader, or a value that goes as JSON
	header map[string]string
	// patience is how much longer than the client's timeout the answer may take. A negative value means no limit.
	patience time.Duration
}

// forever is the patience for streams and for what takes its time.
const forever = -1

// resource returns the name or id of a resource, from either form of it.
func resource(attr string, id any) (string, error) {
	if m, ok := id.(map[string]any); ok {
		id = m["Id"]
	}
	if !pytext.Truth(id) {
		return "", modules.Errorf("Resource ID was not provided")
	}
	s, ok := id.(string)
	if !ok {
		return "", unable(attr, fmt.Sprintf("Expected a string but found %s (<class '%s'>) instead", pytext.Str(id), modules.TypeName(id)))
	}
	return s, nil
}

// unable returns Salt's error for a call that docker-py itself refuses.
func unable(attr, text string) error { return modules.Errorf("Unable to perform %s: %s", attr, text) }

// open sends a request. The answer is one of success; the caller closes its body.
func (d *client) open(attr string, r request) (*http.Response, context.CancelFunc, error) {
	_, line, _ := strings.Cut(routes, "\n"+attr+" ")
	line, _, _ = strings.Cut(line, "\n")
	method, path, _ := strings.Cut(line, " ")
	if strings.Contains(path, "%") {
		id, err := resource(attr, r.id)
		if err != nil {
			return nil, nil, err
		}
		path = strings.Replace(path, "%", id, 1)
	}
	to, err := url.Parse(d.base)
	if err != nil {
		return nil, nil, err
	}
	to.Path += path
	query := url.Values{}
	for k, v := range r.query {
		if v != nil {
			query.Set(k, pytext.Str(v))
		}
	}
	to.RawQuery = query.Encode()
	var body io.Reader
	switch b := r.body.(type) {
	case nil:
	case io.Reader:
		body = b
	default:
		text, err := pyjson.Format(b, pyjson.Options{Indent: -1, ASCII: true})
		if err != nil {
			return nil, nil, unable(attr, err.Error())
		}
		body = strings.NewReader(text)
	}
	within, cancel := context.WithCancel(d.ctx)
	if r.patience >= 0 && d.timeout > 0 {
		cancel()
		within, cancel = context.WithTimeout(d.ctx, d.timeout+r.patience)
	}
	resp, err := d.send(within, method, to.String(), body, r)
	switch {
	case err == nil:
		return resp, cancel, nil
	case modules.IsExecError(err):
	case d.ctx.Err() != nil:
		err = d.ctx.Err()
	case within.Err() != nil:
		err = dockerError("cannot %s %s of Docker at %s: no answer within %s", method, path, d.where, d.timeout+r.patience)
	default:
		err = dockerError("cannot %s %s of Docker at %s: %s", method, path, d.where, cause(err))
	}
	cancel()
	return nil, nil, err
}

// cause returns an error without its URL, which tells users less than the address of the daemon.
func cause(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

func (d *client) send(ctx context.Context, method, to string, body io.Reader, r request) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, to, body)
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if more, ok := d.config["HttpHeaders"].(map[string]any); ok {
		for k, v := range more {
			req.Header.Set(k, pytext.Str(v))
		}
	}
	for k, v := range r.header {
		req.Header.Set(k, v)
	}
	if f, ok := body.(*os.File); ok {
		if info, err := f.Stat(); err == nil {
			req.ContentLength = info.Size()
		}
	}
	resp, err := d.http.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode < 300 || resp.StatusCode == http.StatusNotModified {
		return resp, nil
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxEvent))
	if err != nil {
		return nil, err
	}
	said := strings.TrimSpace(string(text))
	if v, err := pyjson.Parse(text); err == nil {
		if m, ok := v.(map[string]any); ok {
			said = pytext.Str(m["message"])
		}
	}
	return nil, modules.Errorf("Error %d: %s", resp.StatusCode, said)
}

// refused returns the status and the explanation of an error answer from the daemon, and "" for any other error.
func refused(err error) (status, explanation string) {
	if rest, ok := strings.CutPrefix(err.Error(), "Error "); ok && modules.IsExecError(err) {
		status, explanation, _ = strings.Cut(rest, ": ")
	}
	return status, explanation
}

// call sends a request and reads the answer, nil where it is empty.
func (d *client) call(attr string, r request) (any, error) {
	resp, cancel, err := d.open(attr, r)
	if err != nil {
		return nil, err
	}
	defer cancel()
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	switch {
	case d.ctx.Err() != nil:
		return nil, d.ctx.Err()
	case err != nil:
		return nil, unable(attr, fmt.Sprintf("cannot read the answer of Docker at %s: %s", d.where, err))
	case len(text) > maxBody:
		return nil, unable(attr, fmt.Sprintf("the answer of Docker at %s is larger than %d bytes", d.where, maxBody))
	case len(strings.TrimSpace(string(text))) == 0:
		return nil, nil
	}
	v, err := pyjson.Parse(text)
	if err != nil {
		return nil, unable(attr, err.Error())
	}
	return v, nil
}

// dict is like call for a dictionary as the answer.
func (d *client) dict(attr string, r request) (map[string]any, error) {
	v, err := d.call(attr, r)
	m, ok := v.(map[string]any)
	if err == nil && !ok {
		err = unable(attr, "the answer of Docker at "+d.where+" is no dictionary")
	}
	return m, err
}

// list is like call for a list of dictionaries as the answer; None becomes an empty list.
func (d *client) list(attr string, r request) ([]map[string]any, error) {
	v, err := d.call(attr, r)
	if err != nil || v == nil {
		return nil, err
	}
	items, ok := v.([]any)
	out := make([]map[string]any, len(items))
	for i := range items {
		if out[i], _ = items[i].(map[string]any); out[i] == nil {
			ok = false
		}
	}
	if !ok {
		return nil, unable(attr, "the answer of Docker at "+d.where+" is no list of dictionaries")
	}
	return out, nil
}

// events sends a request whose answer is a stream of dictionaries, a line each.
func (d *client) events(attr string, r request) ([]any, error) {
	r.patience = forever
	resp, cancel, err := d.open(attr, r)
	if err != nil {
		return nil, err
	}
	defer cancel()
	defer resp.Body.Close()
	var out []any
	lines := bufio.NewReaderSize(resp.Body, 4096)
	size := 0
	for {
		line, err := readLine(lines)
		if len(line) > 0 {
			v, err := pyjson.Parse(line)
			if err != nil {
				return nil, modules.Errorf("Unable to interpret API event: '%s'", line)
			}
			if size += len(line); len(out) == maxEvents || size > maxBody {
				return nil, unable(attr, "Docker at "+d.where+" does not stop to send events")
			}
			out = append(out, v)
		}
		switch {
		case err == io.EOF:
			return out, nil
		case d.ctx.Err() != nil:
			return nil, d.ctx.Err()
		case err != nil:
			return nil, unable(attr, fmt.Sprintf("cannot read the events of Docker at %s: %s", d.where, err))
		}
	}
}

// readLine reads a line without its end and blanks; one of more than maxEvent bytes is an error.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		piece, err := r.ReadSlice('\n')
		if len(line)+len(piece) > maxEvent {
			return nil, fmt.Errorf("a line is longer than %d bytes", maxEvent)
		}
		line = append(line, piece...)
		if err != bufio.ErrBufferFull {
			return []byte(strings.TrimSpace(string(line))), err
		}
	}
}

// output keeps the beginning of a stream.
type output struct {
	text    []byte
	dropped bool
}

func (o *output) Write(p []byte) (int, error) {
	n := min(len(p), maxOutput-len(o.text))
	o.text = append(o.text, p[:n]...)
	o.dropped = o.dropped || n < len(p)
	return len(p), nil
}

// demultiplex writes the frames of a stream to their writers, until its end.
func demultiplex(r io.Reader, stdout, stderr io.Writer) error {
	var head [8]byte
	for {
		if _, err := io.ReadFull(r, head[:]); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		to := stdout
		if head[0] == 2 {
			to = stderr
		}
		if _, err := io.CopyN(to, r, int64(binary.BigEndian.Uint32(head[4:]))); err == io.EOF {
			return io.ErrUnexpectedEOF
		} else if err != nil {
			return err
		}
	}
}

// readConfig reads Docker's config.json: that of DOCKER_CONFIG or of the home directory. One that cannot be read counts as empty.
func (d *client) readConfig() {
	dir, _ := d.Context().Getenv("DOCKER_CONFIG")
	if dir == "" {
		dir = nss.ExpandUser(d.ctx, d.Call, "~/.docker")
	}
	d.file = filepath.Join(dir, "config.json")
	b, err := readSmall(d.Path(d.file))
	if errors.Is(err, os.ErrNotExist) {
		return
	}
	var v any
	if err == nil {
		v, err = pyjson.Parse(b)
	}
	if err != nil {
		d.Logger().Warn("Cannot read Docker's configuration", "path", d.file, "error", err)
	}
	d.config, _ = v.(map[string]any)
}

// readSmall reads a file of at most maxEvent bytes.
func readSmall(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxEvent+1))
	if len(b) > maxEvent {
		err = fmt.Errorf("%s is larger than %d bytes", path, maxEvent)
	}
	return b, err
}

// credentials returns the log-ins of Docker's configuration by registry.
func (d *client) credentials() map[string]any {
	out := map[string]any{}
	auths, _ := d.config["auths"].(map[string]any)
	for registry, v := range auths {
		entry, _ := v.(map[string]any)
		if token, ok := entry["identitytoken"]; ok {
			out[registry] = map[string]any{"IdentityToken": token}
			continue
		}
		text, _ := entry["auth"].(string)
		b, err := base64.StdEncoding.DecodeString(text)
		if name, password, ok := strings.Cut(string(b), ":"); ok && err == nil {
			out[registry] = map[string]any{"username": name, "password": password, "email": entry["email"], "serveraddress": registry}
		}
	}
	if pytext.Truth(d.config["credsStore"]) || pytext.Truth(d.config["credHelpers"]) {
		d.Logger().Warn("Docker's credential helpers are not supported, only what its configuration holds is used", "path", d.file)
	}
	return out
}

const indexURL = "https://index.docker.io/v1/"

// hostOf returns the host name of a registry.
func hostOf(registry string) string {
	registry = strings.TrimPrefix(strings.TrimPrefix(registry, "http://"), "https://")
	registry, _, _ = strings.Cut(registry, "/")
	if registry == "index.docker.io" {
		return "docker.io"
	}
	return registry
}

// authorize returns the request header with the log-in for an image's registry.
func (d *client) authorize(attr, repository string) (map[string]string, error) {
	if strings.Contains(repository, "://") {
		return nil, modules.Errorf("Repository name cannot contain a scheme (%s)", repository)
	}
	registry, _, ok := strings.Cut(repository, "/")
	if !ok || !strings.ContainsAny(registry, ".:") && registry != "localhost" {
		registry = "docker.io"
	}
	if strings.HasPrefix(registry, "-") || strings.HasSuffix(registry, "-") {
		return nil, modules.Errorf("Invalid index name (%s). Cannot begin or end with a hyphen.", registry)
	}
	for known, login := range d.credentials() {
		if hostOf(known) == registry {
			return encoded("X-Registry-Auth", login)
		}
	}
	return nil, nil
}

func encoded(header string, v any) (map[string]string, error) {
	text, err := pyjson.Format(v, pyjson.Options{Indent: -1, ASCII: true})
	return map[string]string{header: base64.URLEncoding.EncodeToString([]byte(text))}, err
}

// proxies returns the proxy settings of Docker's configuration, which go into the environment of containers.
func (d *client) proxies() map[string]any {
	all, _ := d.config["proxies"].(map[string]any)
	own, ok := all[d.where].(map[string]any)
	if !ok {
		own, _ = all["default"].(map[string]any)
	}
	out := map[string]any{}
	for _, p := range [...][2]string{{"httpProxy", "http_proxy"}, {"httpsProxy", "https_proxy"}, {"ftpProxy", "ftp_proxy"}, {"noProxy", "no_proxy"}} {
		if v := own[p[0]]; pytext.Truth(v) {
			out[p[1]], out[strings.ToUpper(p[1])] = v, v
		}
	}
	return out
}

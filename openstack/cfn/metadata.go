package cfn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/atomicfile"
	"github.com/brine-salt/brine/internal/python/configparser"
	"github.com/brine-salt/brine/internal/python/pyjson"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/openstack/internal/ec2sign"
)

// Files of heat-cfntools and of Heat's user data.
const (
	dataDir       = "/var/lib/heat-cfntools"
	initData      = dataDir + "/cfn-init-data"
	cloudInitData = "/var/lib/cloud/data/cfn-init-data"
	botoFile      = dataDir + "/cfn-boto-cfg"
	serverFile    = dataDir + "/cfn-metadata-server"
	lastMetadata  = "/var/cache/heat-cfntools/last_metadata"
	credFile      = "/etc/cfn/cfn-credentials"
)

const (
	// maxMetadata limits the size of metadata in bytes. Heat's own limit for a template is 512 KiB.
	maxMetadata = 16 << 20
	// requestTimeout is the time limit for a request to the CFN API.
	requestTimeout = 30 * time.Second
	// defaultPort is the port of heat-api-cfn.
	defaultPort = "8000"
)

// host is the machine that the metadata is for.
type host struct {
	// path converts a path of the host to one of this process, see modules.Env.Path.
	path   func(string) string
	client *http.Client
	now    func() time.Time
	log    *slog.Logger
}

// httpClient returns a client for requests. If insecure is set it accepts any certificate.
func httpClient(insecure bool) *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	if insecure {
		t.TLSClientConfig.InsecureSkipVerify = true
	}
	return &http.Client{Transport: t, Timeout: requestTimeout}
}

// query describes the metadata to get.
type query struct {
	stack, resource string
	access, secret  string
	// credentials is a file with the keys. If it is set, other keys are ignored.
	credentials string
	// url is the CFN API's URL, or "" for the one in the host's files.
	url string
	// given is the caller's own metadata, as a map or JSON, or nil if it must be fetched.
	given any
}

// answer holds the metadata that was found.
type answer struct {
	metadata any
	// last is the previous metadata, or nil if it is missing.
	last any
	// source is where the metadata comes from: an address or a file.
	source  string
	changed bool
}

// errNoMetadata means that neither the CFN API nor the host's files have metadata.
var errNoMetadata = errors.New("no metadata found")

// retrieve fetches metadata, or reads a copy of it if the API is not available, and stores a copy where heat-cfntools
// looks for it. The caller's own metadata is not stored.
func (h *host) retrieve(ctx context.Context, q query) (*answer, error) {
	a, err := h.find(ctx, q)
	if err != nil || q.given != nil {
		return a, err
	}
	a.last = h.lastOf(q.resource)
	a.changed = a.last == nil || !pyobj.Equal(a.metadata, a.last)
	if err := h.keep(q.resource, a.metadata); err != nil {
		h.log.Warn("Cannot keep a copy of the metadata", "err", err)
	}
	return a, nil
}

func (h *host) find(ctx context.Context, q query) (*answer, error) {
	if q.given != nil {
		v, err := decodeMetadata(q.given, "metadata")
		return &answer{metadata: v, source: "argument"}, err
	}
	cred, err := h.credentials(q)
	if err != nil {
		return nil, err
	}
	if cred != nil {
		a, err := h.remote(ctx, q, *cred)
		var away *unreachableError
		if !errors.As(err, &away) {
			return a, err
		}
		h.log.Warn("Cannot fetch metadata; the copy on this host is used", "err", err)
	} else {
		h.log.Warn("No credentials for the CFN API; the metadata on this host is used")
	}
	return h.local(q.resource)
}

// local reads metadata from the host's files, in the order of precedence.
func (h *host) local(resource string) (*answer, error) {
	files := []string{lastMetadata, initData, cloudInitData}
	if resource != "" {
		files = append([]string{lastOf(resource)}, files...)
	}
	for _, name := range files {
		b, err := readBounded(h.path(name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read the metadata: %w", err)
		}
		v, err := decodeMetadata(string(b), name)
		return &answer{metadata: v, source: name}, err
	}
	return nil, fmt.Errorf("%w: no credentials for the CFN API, and no %s", errNoMetadata, strings.Join(files, ", "))
}

func readBounded(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxMetadata+1))
	if err == nil && len(b) > maxMetadata {
		err = fmt.Errorf("%s has more than %d bytes", name, maxMetadata)
	}
	return b, err
}

// decodeMetadata decodes JSON. A value that is not a text is returned as an ordered value.
func decodeMetadata(v any, from string) (any, error) {
	s, ok := v.(string)
	if !ok {
		return pyobj.From(v), nil
	}
	v, err := pyjson.ParseObject([]byte(s))
	if err != nil {
		return nil, fmt.Errorf("%s is not JSON: %w", from, err)
	}
	return v, nil
}

// lastOf returns the file that stores the metadata of a resource. Names of resources contain no slashes in Heat.
func lastOf(resource string) string {
	if resource == "" {
		return lastMetadata
	}
	return lastMetadata + "_" + strings.ReplaceAll(resource, "/", "_")
}

// lastOf returns the metadata that was stored last, or nil if it is missing. The resource's own file takes
// precedence, since the other one may be of another resource.
func (h *host) lastOf(resource string) any {
	for _, name := range [...]string{lastOf(resource), lastMetadata} {
		b, err := readBounded(h.path(name))
		if err != nil {
			continue
		}
		if v, err := pyjson.ParseObject(b); err == nil {
			return v
		}
	}
	return nil
}

// keep stores the metadata. Only root may read the files, since metadata can contain passwords.
func (h *host) keep(resource string, v any) error {
	text, err := pyjson.Format(v, pyjson.Options{Indent: -1, ASCII: true})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(h.path(lastMetadata)), 0o700); err != nil {
		return err
	}
	err = atomicfile.WriteFile(h.path(lastMetadata), []byte(text), 0o600)
	if err == nil && resource != "" {
		err = atomicfile.WriteFile(h.path(lastOf(resource)), []byte(text), 0o600)
	}
	return err
}

// unreachableError means that the CFN API is not available now, so that older metadata may be used.
type unreachableError struct{ err error }

func (e *unreachableError) Error() string { return e.err.Error() }
func (e *unreachableError) Unwrap() error { return e.err }

// remote requests the metadata from the CFN API.
func (h *host) remote(ctx context.Context, q query, cred ec2sign.Credentials) (*answer, error) {
	if q.stack == "" || q.resource == "" {
		return nil, errors.New("cannot ask the CFN API: the names of the stack and of the resource are needed")
	}
	endpoint, err := h.endpoint(q.url)
	if err != nil {
		return nil, err
	}
	signed := cred.URL(http.MethodGet, endpoint, ec2sign.DescribeStackResource(q.stack, q.resource), h.now())
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, signed.String(), nil)
	if err != nil {
		return nil, err
	}
	res, err := h.client.Do(req)
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) { // its text contains the signature
			err = u.Err
		}
		return nil, &unreachableError{fmt.Errorf("cannot reach the CFN API at %s: %w", endpoint, err)}
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxMetadata+1))
	switch {
	case err != nil:
		return nil, &unreachableError{fmt.Errorf("cannot read the answer of the CFN API at %s: %w", endpoint, err)}
	case len(body) > maxMetadata:
		return nil, fmt.Errorf("the answer of the CFN API at %s has more than %d bytes", endpoint, maxMetadata)
	case res.StatusCode >= 500:
		return nil, &unreachableError{fmt.Errorf("the CFN API at %s answers %s", endpoint, res.Status)}
	case res.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("the CFN API at %s answers %s: %s", endpoint, res.Status, shorten(string(body), 300))
	}
	v, err := resourceMetadata(body)
	return &answer{metadata: v, source: endpoint.String()}, err
}

// resourceMetadata returns the metadata in a response to DescribeStackResource.
func resourceMetadata(body []byte) (any, error) {
	v, err := pyjson.ParseObject(body)
	if err != nil {
		return nil, fmt.Errorf("the answer of the CFN API is not JSON: %w", err)
	}
	n := node{"", v}
	for _, key := range [...]string{"DescribeStackResourceResponse", "DescribeStackResourceResult", "StackResourceDetail", "Metadata"} {
		next, ok := n.child(key)
		if !ok {
			return nil, fmt.Errorf("the answer of the CFN API has no %s", n.join(key))
		}
		n = next
	}
	return decodeMetadata(n.v, "the metadata in the answer of the CFN API")
}

func shorten(s string, n int) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > n {
		s = strings.ToValidUTF8(s[:n], "") + "…"
	}
	return s
}

// endpoint returns the URL of the CFN API. Heat's user data stores it in two files: the one for boto has the host,
// the other the port. heat-cfntools always uses HTTP; this package uses the scheme in the second file.
func (h *host) endpoint(given string) (*url.URL, error) {
	if given != "" {
		return parseEndpoint(given, "the CFN API's address")
	}
	u := &url.URL{Scheme: "http", Host: "127.0.0.1:" + defaultPort, Path: "/v1/"}
	found := false
	if b, err := readBounded(h.path(serverFile)); err == nil && strings.TrimSpace(string(b)) != "" {
		if u, err = parseEndpoint(strings.TrimSpace(string(b)), serverFile); err != nil {
			return nil, err
		}
		found = true
	}
	b, err := readBounded(h.path(botoFile))
	if err == nil {
		list, err := configparser.Parse(string(b), botoFile, false)
		if err != nil {
			return nil, fmt.Errorf("cannot read %s: %w", botoFile, err)
		}
		if s := configparser.Find(list, "Boto"); s != nil {
			if name, ok := s.Get("cfn_region_endpoint"); ok && name != "" {
				port := u.Port()
				if port == "" {
					port = defaultPort
				}
				u.Host, found = name+":"+port, true
			}
		}
	}
	if !found {
		return nil, fmt.Errorf("cannot find the CFN API: neither %s nor %s names it", botoFile, serverFile)
	}
	return u, nil
}

func parseEndpoint(text, from string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("%s is not an http or https address: %q", from, text)
	}
	u.RawQuery, u.Fragment = "", ""
	if strings.Trim(u.Path, "/") == "" {
		u.Path = "/v1/"
	}
	if !strings.HasSuffix(u.Path, "/") {
		u.Path += "/"
	}
	return u, nil
}

package trove

import (
	"bufio"
	"bytes"
	"context"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/objectstorage/v1/containers"
	"github.com/gophercloud/gophercloud/v2/openstack/objectstorage/v1/objects"
	"github.com/gophercloud/gophercloud/v2/openstack/objectstorage/v1/swauth"
	"github.com/gophercloud/gophercloud/v2/pagination"

	"github.com/brine-salt/brine/modules"
)

// swift keeps objects as Trove's own agent does (backup/storage/swift.py of its backup image): a large object in
// segments with a manifest (SLO), whose checksum is the checksum of the segments' checksums. Each agent can restore
// the other's backups.
type swift struct {
	client  *gophercloud.ServiceClient
	segment int64 // bytes
}

// swiftSegment is Trove's size of segments. The limit for an object is 5 GiB.
const swiftSegment = 2 << 30

// openSwift logs in with the credentials of the store, or with the token in the call's context.
func (g *guest) openSwift(ctx context.Context) (store, error) {
	c, err := g.readStore("auth_url", "auth_version", "username", "password", "user_domain_name", "project_name", "project_domain_name",
		"application_credential_id", "application_credential_secret", "region", "segment_size", "cacert")
	if err != nil {
		return nil, err
	}
	s := &swift{segment: c.segment(swiftSegment)}
	client, err := c.httpClient(g)
	if err == nil {
		s.client, err = g.logIn(ctx, c, client)
	}
	if err != nil {
		return nil, modules.Errorf("cannot use the store swift: %v", err)
	}
	return s, nil
}

func (g *guest) logIn(ctx context.Context, c storeConfig, client http.Client) (*gophercloud.ServiceClient, error) {
	at := c.words["auth_url"]
	if at == "" {
		return nil, modules.Errorf("it has no auth_url")
	}
	provider, err := openstack.NewClient(at)
	if err != nil {
		return nil, err
	}
	provider.HTTPClient = client
	if c.words["auth_version"] == "1" {
		// The library appends this suffix, with which the address is usually written.
		provider.IdentityBase = strings.TrimSuffix(strings.TrimRight(at, "/"), "auth/v1.0")
		return swauth.NewObjectStorageV1(ctx, provider, swauth.AuthOpts{User: c.words["username"], Key: c.words["password"]})
	}
	o := gophercloud.AuthOptions{IdentityEndpoint: at, AllowReauth: true}
	token := textOf(g.req, "auth_token")
	switch {
	case c.words["application_credential_id"] != "":
		o.ApplicationCredentialID = c.words["application_credential_id"]
		o.ApplicationCredentialSecret = c.words["application_credential_secret"]
	case c.words["username"] != "":
		o.Username, o.Password, o.DomainName = c.words["username"], c.words["password"], c.orDefault("user_domain_name")
		o.Scope = &gophercloud.AuthScope{ProjectName: c.words["project_name"], DomainName: c.orDefault("project_domain_name")}
	case token != "":
		o.TokenID, o.AllowReauth = token, false
		o.Scope = &gophercloud.AuthScope{ProjectID: textOf(g.req, "project_id")}
	default:
		return nil, modules.Errorf("it has neither username nor application_credential_id, and the call has no token")
	}
	if err := openstack.Authenticate(ctx, provider, o); err != nil {
		return nil, err
	}
	return openstack.NewObjectStorageV1(provider, gophercloud.EndpointOpts{Region: c.words["region"]})
}

// wrap shortens errors of the library, which contain whole pages of a server.
func (s *swift) wrap(what, name string, err error) error {
	if err == nil {
		return nil
	}
	var code gophercloud.ErrUnexpectedResponseCode
	switch {
	case gophercloud.ResponseCodeIs(err, http.StatusNotFound):
		return fmt.Errorf("cannot %s %s: the store has no such object: %w", what, name, fs.ErrNotExist)
	case errors.As(err, &code):
		return modules.Errorf("cannot %s %s: the store answers with status %d", what, name, code.Actual)
	}
	return modules.Errorf("cannot %s %s: %v", what, name, err)
}

func (s *swift) put(ctx context.Context, container, name string, r io.Reader, meta map[string]string) (string, error) {
	if err := containers.Create(ctx, s.client, container, nil).Err; err != nil {
		return "", s.wrap("make the container", container, err)
	}
	in := bufio.NewReaderSize(r, 64<<10)
	small, err := in.Peek(in.Size())
	if errors.Is(err, io.EOF) && int64(len(small)) <= s.segment {
		etag, _, err := s.upload(ctx, container, name, in, meta)
		return etag, s.wrap("store", name, err)
	}
	var parts []segment
	etag, err := s.uploadSegments(ctx, container, name, in, meta, &parts)
	if err != nil {
		err = s.wrap("store", name, err)
		for _, p := range parts {
			gone := objects.Delete(context.WithoutCancel(ctx), s.client, container, p.name, nil).Err
			if gone != nil && !gophercloud.ResponseCodeIs(gone, http.StatusNotFound) {
				err = errors.Join(err, s.wrap("remove", p.name, gone))
			}
		}
	}
	return etag, err
}

// segment is one entry of a large object's manifest.
type segment struct {
	Path string `json:"path"`
	ETag string `json:"etag"`
	Size int64  `json:"size_bytes"`
	name string
}

// uploadSegments appends every segment that it stores to parts, so that the caller can remove them after a failure.
func (s *swift) uploadSegments(ctx context.Context, container, name string, in *bufio.Reader, meta map[string]string,
	parts *[]segment) (string, error) {
	base, _, _ := strings.Cut(path.Base(name), ".")
	base = path.Join(path.Dir(name), base)
	sums := md5.New()
	for {
		p := segment{name: fmt.Sprintf("%s_%08d", base, len(*parts))}
		p.Path = container + "/" + p.name
		*parts = append(*parts, p)
		var err error
		if p.ETag, p.Size, err = s.upload(ctx, container, p.name, io.LimitReader(in, s.segment), nil); err != nil {
			return "", err
		}
		(*parts)[len(*parts)-1] = p
		_, _ = io.WriteString(sums, p.ETag)
		if _, err := in.Peek(1); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return "", err
		}
	}
	if len(*parts) == 1 {
		// Trove gives a single segment the object's name.
		only := (*parts)[0]
		opts := objects.CreateOpts{Content: strings.NewReader(""), NoETag: true, CopyFrom: url.PathEscape(only.Path),
			Metadata: metaHeaders(meta)}
		if err := objects.Create(ctx, s.client, container, name, opts).Err; err != nil {
			return "", err
		}
		return only.ETag, objects.Delete(ctx, s.client, container, only.name, nil).Err
	}
	manifest, err := json.Marshal(*parts)
	if err != nil {
		return "", err
	}
	opts := objects.CreateOpts{Content: bytes.NewReader(manifest), NoETag: true, MultipartManifest: "put",
		Metadata: metaHeaders(meta)}
	return hex.EncodeToString(sums.Sum(nil)), objects.Create(ctx, s.client, container, name, opts).Err
}

// upload streams one object, and compares the MD5 of the store with that of what was sent.
func (s *swift) upload(ctx context.Context, container, name string, r io.Reader, meta map[string]string) (etag string, size int64, err error) {
	sum := md5.New()
	counted := &countingReader{r: io.TeeReader(r, sum)}
	h, err := objects.Create(ctx, s.client, container, name,
		objects.CreateOpts{Content: counted, NoETag: true, Metadata: metaHeaders(meta)}).Extract()
	if err != nil {
		return "", 0, err
	}
	etag = hex.EncodeToString(sum.Sum(nil))
	if h.ETag != etag {
		return "", 0, modules.Errorf("the store has an object with the checksum %s, sent was one with %s", h.ETag, etag)
	}
	return etag, counted.n, nil
}

type countingReader struct {
	r io.Reader
	n int64
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// metaHeaders returns metadata with the suffixes of header names as keys, which have no underscores.
func metaHeaders(meta map[string]string) map[string]string {
	out := make(map[string]string, len(meta))
	for k, v := range meta {
		out[strings.ReplaceAll(k, "_", "-")] = v
	}
	return out
}

func (s *swift) annotate(ctx context.Context, container, name string, meta map[string]string) error {
	return s.wrap("store the metadata of", name,
		objects.Update(ctx, s.client, container, name, objects.UpdateOpts{Metadata: metaHeaders(meta)}).Err)
}

func (s *swift) get(ctx context.Context, container, name string) (*object, error) {
	r := objects.Download(ctx, s.client, container, name, nil)
	if r.Err != nil {
		return nil, s.wrap("read", name, r.Err)
	}
	o := &object{ReadCloser: r.Body, meta: map[string]string{}, checksum: strings.Trim(r.Header.Get("Etag"), `"`)}
	for k := range r.Header {
		if k, ok := strings.CutPrefix(strings.ToLower(k), "x-object-meta-"); ok {
			o.meta[strings.ReplaceAll(k, "-", "_")] = r.Header.Get("X-Object-Meta-" + k)
		}
	}
	if r.Header.Get("X-Static-Large-Object") == "" {
		o.checksum = "" // the checksum is that of what is read
	}
	return o, nil
}

func (s *swift) names(ctx context.Context, container, prefix string) ([]string, error) {
	var list []string
	pages := objects.List(s.client, container, objects.ListOpts{Prefix: prefix})
	err := pages.EachPage(ctx, func(_ context.Context, p pagination.Page) (bool, error) {
		names, err := objects.ExtractNames(p)
		list = append(list, names...)
		return true, err
	})
	if gophercloud.ResponseCodeIs(err, http.StatusNotFound) {
		return nil, nil
	}
	slices.Sort(list)
	return list, s.wrap("list", container, err)
}

// remove removes an object, including the segments of a large one.
func (s *swift) remove(ctx context.Context, container, name string) error {
	h, err := objects.Get(ctx, s.client, container, name, nil).Extract()
	switch {
	case err != nil:
	case h.StaticLargeObject:
		err = s.removeLarge(ctx, container, name)
	default:
		err = objects.Delete(ctx, s.client, container, name, nil).Err
	}
	if gophercloud.ResponseCodeIs(err, http.StatusNotFound) {
		return nil
	}
	return s.wrap("remove", name, err)
}

// removeLarge removes a manifest with its segments. The store always answers with status 200; the body holds the
// result.
func (s *swift) removeLarge(ctx context.Context, container, name string) error {
	var said struct {
		Status string     `json:"Response Status"`
		Errors [][]string `json:"Errors"`
	}
	_, err := s.client.Delete(ctx, s.client.ServiceURL(url.PathEscape(container), url.PathEscape(name))+"?multipart-manifest=delete",
		&gophercloud.RequestOpts{OkCodes: []int{http.StatusOK}, JSONResponse: &said, MoreHeaders: map[string]string{"Accept": "application/json"}})
	if err == nil && (said.Status != "200 OK" || len(said.Errors) > 0) {
		err = modules.Errorf("the store says %s: %v", said.Status, said.Errors)
	}
	return err
}

func (s *swift) location(container, name string) string {
	return s.client.Endpoint + container + "/" + name
}

// locate accepts any host in the address, as long as the account is the same: a guest may reach the store under
// another address than Trove.
func (s *swift) locate(location string) (container, name string, err error) {
	at, err := url.Parse(location)
	if err == nil {
		var own *url.URL
		if own, err = url.Parse(s.client.Endpoint); err == nil {
			rest, ok := strings.CutPrefix(at.Path, own.Path)
			container, name, found := strings.Cut(rest, "/")
			if ok && found && container != "" && name != "" {
				return container, name, nil
			}
		}
	}
	return "", "", modules.Errorf("cannot find the backup %s: it is not in the store %s", strconv.Quote(location), s.client.Endpoint)
}

var _ store = (*swift)(nil)

package heat

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/python/pyjson"
	"github.com/brine-salt/brine/openstack/internal/ec2sign"
)

// Document is one collected piece of metadata, with the name of its cache file.
type Document struct {
	Name    string
	Content any
}

// errNotConfigured means that a collector has no configuration, errUnchanged that its source has no new metadata.
var (
	errNotConfigured = errors.New("not configured")
	errUnchanged     = errors.New("not modified")
)

// DefaultCollectors are the default collectors. Later ones take precedence.
var DefaultCollectors = []string{"heat_local", "ec2", "cfn", "heat", "request", "local", "zaqar"}

// collectors fetch the metadata. They keep tokens and validators between calls, so that an idle poll needs one
// request.
type collectors struct {
	conf  Conf
	paths Paths
	log   *slog.Logger
	ks    *keystone
	webs  map[string]*web
	etag  map[string]string // of the request collector, by URL and header
	now   func() time.Time
	noted map[string]string // last warning about each collector
	have  func(name string) bool
	via   http.RoundTripper
}

func newCollectors(conf Conf, paths Paths, log *slog.Logger, ks *keystone) *collectors {
	return &collectors{conf: conf, paths: paths, log: log, ks: ks, webs: map[string]*web{}, etag: map[string]string{}, now: time.Now,
		noted: map[string]string{}, have: func(string) bool { return false }}
}

// names returns the collectors to use.
func (c *collectors) names() []string {
	var names []string
	for _, v := range c.conf.All("DEFAULT", "collectors", DefaultCollectors...) {
		names = append(names, strings.FieldsFunc(v, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' })...)
	}
	return names
}

// all queries every collector. A source that is not available is logged and skipped.
func (c *collectors) all(ctx context.Context) []Document {
	var docs []Document
	for _, name := range c.names() {
		list, err := c.one(ctx, name)
		switch {
		case ctx.Err() != nil:
			return docs
		case errors.Is(err, errNotConfigured), errors.Is(err, errUnchanged):
			c.log.Debug("Nothing collected", "collector", name, "err", err)
			delete(c.noted, name)
		case err != nil:
			if text := err.Error(); c.noted[name] != text { // log the same error once
				c.noted[name] = text
				c.log.Warn("A source of metadata is not available", "collector", name, "err", err)
			}
		default:
			delete(c.noted, name)
			docs = append(docs, list...)
		}
	}
	return docs
}

func (c *collectors) one(ctx context.Context, name string) ([]Document, error) {
	switch name {
	case "heat_local":
		return c.heatLocal()
	case "local":
		return c.local()
	case "ec2":
		return c.ec2(ctx)
	}
	var content map[string]any
	var err error
	switch name {
	case "cfn":
		content, err = c.cfn(ctx)
	case "heat":
		content, err = c.heat(ctx)
	case "request":
		content, err = c.request(ctx)
	case "zaqar":
		content, err = c.zaqar(ctx)
	default:
		return nil, fmt.Errorf("there is no collector %q", name)
	}
	if err != nil {
		return nil, err
	}
	return c.explode(name, content), nil
}

// explode adds the deployments that are themselves metadata, as os-collect-config does for os-apply-config.
func (c *collectors) explode(name string, content map[string]any) []Document {
	docs := []Document{{name, content}}
	for _, key := range c.conf.All("DEFAULT", "deployment_key", "deployments") {
		list, _ := content[key].([]any)
		for _, v := range list {
			d, _ := v.(map[string]any)
			group, has := d["group"].(string)
			title, ok := d["name"].(string)
			if ok && goodID(title) && (!has || group == "os-apply-config" || group == "Heat::Ungrouped") {
				docs = append(docs, Document{title, d["config"]})
			}
		}
	}
	return docs
}

func (c *collectors) web(section string) *web {
	w := c.webs[section]
	if w == nil {
		w = &web{timeout: c.conf.Seconds(section, "timeout", defaultHTTPTimeout), ca: c.conf.Get(section, "ca_certificate", "")}
		w.via = c.via
		if section == "zaqar" {
			w.ca = c.conf.Get(section, "ca_file", "")
		}
		c.webs[section] = w
	}
	return w
}

// hangUp closes idle connections.
func (c *collectors) hangUp() {
	for _, w := range c.webs {
		w.hangUp()
	}
}

// cfn requests DescribeStackResource from the CloudFormation API.
func (c *collectors) cfn(ctx context.Context) (map[string]any, error) {
	address := c.conf.Get("cfn", "metadata_url", "")
	if address == "" {
		hint := c.paths.at(c.conf.Get("cfn", "heat_metadata_hint", "/var/lib/heat-cfntools/cfn-metadata-server"))
		if text, err := readLimited(hint, 4<<10); err == nil {
			address = strings.TrimRight(strings.TrimSpace(string(text)), "/") + "/v1/"
		}
	}
	keys := ec2sign.Credentials{Access: c.conf.Get("cfn", "access_key_id", ""), Secret: c.conf.Get("cfn", "secret_access_key", "")}
	paths := c.conf.All("cfn", "path")
	if address == "" || keys.Access == "" || keys.Secret == "" || len(paths) == 0 {
		return nil, errNotConfigured
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("metadata_url %q is not an address", plainURL(address))
	}
	all := map[string]any{}
	for _, path := range paths {
		resource, field, ok := strings.Cut(path, ".")
		if !ok {
			return nil, fmt.Errorf("path %q must have the form resource.field", path)
		}
		signed := keys.URL(http.MethodGet, u, ec2sign.DescribeStackResource(c.conf.Get("cfn", "stack_name", ""), resource), c.now())
		_, body, err := c.web("cfn").do(ctx, request{method: http.MethodGet, url: signed.String(),
			header: map[string]string{"Content-Type": "application/json", "Accept": "application/json"}})
		if err != nil {
			return nil, err
		}
		field, sub, _ := strings.Cut(field, ".")
		v, err := stackResource(body, field)
		if err != nil {
			return nil, err
		}
		if sub != "" {
			for key := range strings.SplitSeq(sub, ".") {
				m, _ := v.(map[string]any)
				if v, ok = m[key]; !ok {
					return nil, fmt.Errorf("the metadata has no %s in %s", key, path)
				}
			}
		}
		m, ok := v.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("the metadata %s must be a map, not %s", path, kind(v))
		}
		for k, v := range m {
			all[k] = v
		}
	}
	return all, nil
}

// stackResource returns a JSON field in a response to DescribeStackResource, which is JSON or XML.
func stackResource(body []byte, field string) (any, error) {
	var text string
	if trimmed := strings.TrimSpace(string(body[:min(len(body), 64)])); strings.HasPrefix(trimmed, "{") {
		m, err := parseMap(body, "the answer of the CFN API")
		if err != nil {
			return nil, err
		}
		for _, key := range [...]string{"DescribeStackResourceResponse", "DescribeStackResourceResult", "StackResourceDetail"} {
			m, _ = m[key].(map[string]any)
		}
		v, ok := m[field]
		if !ok {
			return nil, fmt.Errorf("the answer of the CFN API has no %s", field)
		}
		if text, ok = v.(string); !ok {
			return v, nil
		}
	} else {
		var answer struct {
			Detail struct {
				Fields []struct {
					XMLName xml.Name
					Text    string `xml:",chardata"`
				} `xml:",any"`
			} `xml:"DescribeStackResourceResult>StackResourceDetail"`
		}
		if err := xml.Unmarshal(body, &answer); err != nil {
			return nil, fmt.Errorf("the answer of the CFN API is damaged: %w", err)
		}
		found := false
		for _, f := range answer.Detail.Fields {
			if f.XMLName.Local == field {
				text, found = f.Text, true
			}
		}
		if !found {
			return nil, fmt.Errorf("the answer of the CFN API has no %s", field)
		}
	}
	v, err := pyjson.Parse([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("the metadata is damaged: %w", err)
	}
	return v, nil
}

// login returns the stack user in a section. ok is false if something is missing.
func (c *collectors) login(section string) (l Login, ok bool) {
	l = Login{AuthURL: c.conf.Get(section, "auth_url", ""), UserID: c.conf.Get(section, "user_id", ""),
		Password: c.conf.Get(section, "password", ""), ProjectID: c.conf.Get(section, "project_id", ""),
		Region: c.conf.Get(section, "region_name", "")}
	return l, l.AuthURL != "" && l.UserID != "" && l.Password != "" && l.ProjectID != ""
}

// heat requests the resource's metadata from Heat's API.
func (c *collectors) heat(ctx context.Context) (map[string]any, error) {
	l, ok := c.login("heat")
	stack, name := c.conf.Get("heat", "stack_id", ""), c.conf.Get("heat", "resource_name", "")
	if !ok || stack == "" || name == "" {
		return nil, errNotConfigured
	}
	body, err := c.ks.call(ctx, c.web("heat"), l, "orchestration", request{method: http.MethodGet}, func(endpoint string) string {
		return resourceURL(endpoint, stack, name) + "/metadata"
	})
	if err != nil {
		return nil, err
	}
	m, err := parseMap(body, "Heat's answer")
	if err != nil {
		return nil, err
	}
	content, ok := m["metadata"].(map[string]any)
	if !ok {
		return nil, errors.New("heat's answer has no metadata")
	}
	return content, nil
}

// resourceURL returns the URL of a resource. stack is "name/id".
func resourceURL(endpoint, stack, name string) string {
	parts := strings.Split(stack, "/")
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	return endpoint + "/stacks/" + strings.Join(parts, "/") + "/resources/" + url.PathEscape(name)
}

// request fetches the metadata from a URL that needs no login, unless it has not changed.
func (c *collectors) request(ctx context.Context) (map[string]any, error) {
	address := c.conf.Get("request", "metadata_url", "")
	if address == "" {
		return nil, errNotConfigured
	}
	header := map[string]string{}
	if c.have("request") { // the cache has the metadata for the validators
		if v := c.etag[address+" etag"]; v != "" {
			header["If-None-Match"] = v
		}
		if v := c.etag[address+" modified"]; v != "" {
			header["If-Modified-Since"] = v
		}
	}
	res, body, err := c.web("request").do(ctx, request{method: http.MethodGet, url: address, header: header})
	if err != nil {
		return nil, err
	}
	if res.StatusCode == http.StatusNotModified {
		return nil, errUnchanged
	}
	m, err := parseMap(body, "the metadata")
	if err != nil {
		return nil, err
	}
	clear(c.etag)
	c.etag[address+" etag"], c.etag[address+" modified"] = res.Header.Get("Etag"), res.Header.Get("Last-Modified")
	return m, nil
}

// maxMessages limits the messages that one poll takes from a queue.
const maxMessages = 100

// zaqar takes messages from a queue. Each contains the complete metadata, so the last one is used.
func (c *collectors) zaqar(ctx context.Context) (map[string]any, error) {
	l, ok := c.login("zaqar")
	queue := c.conf.Get("zaqar", "queue_id", "")
	if !ok || queue == "" {
		return nil, errNotConfigured
	}
	var last map[string]any
	for range maxMessages {
		body, err := c.ks.call(ctx, c.web("zaqar"), l, "messaging", request{method: http.MethodDelete, header: zaqarHeader(l)},
			func(endpoint string) string { return queueURL(endpoint, queue) + "?pop=1" })
		var status *StatusError
		if errors.As(err, &status) && status.Code == http.StatusNotFound && last == nil {
			return nil, errUnchanged // the queue is created with its first message
		}
		if err != nil {
			return last, err
		}
		if len(body) == 0 {
			break
		}
		m, err := parseMap(body, "Zaqar's answer")
		if err != nil {
			return nil, err
		}
		list, _ := m["messages"].([]any)
		if len(list) == 0 {
			break
		}
		message, _ := list[len(list)-1].(map[string]any)
		if content, ok := message["body"].(map[string]any); ok {
			last = content
		} else {
			c.log.Warn("A message of the queue is not metadata", "queue", queue)
		}
	}
	if last == nil {
		return nil, errUnchanged
	}
	return last, nil
}

// queueURL returns the URL of a queue's messages.
func queueURL(endpoint, queue string) string {
	return strings.TrimSuffix(endpoint, "/v2") + "/v2/queues/" + url.PathEscape(queue) + "/messages"
}

// zaqarClient identifies this client to Zaqar, which requires a UUID. Zaqar hides a client's own messages from
// listing, not from pop.
const zaqarClient = "6f9d1a52-3a8c-4b0e-9a57-62d5f2b7c0de"

func zaqarHeader(l Login) map[string]string {
	return map[string]string{"Client-ID": zaqarClient, "X-Project-ID": l.ProjectID, "Content-Type": "application/json"}
}

// pretty formats a document as os-collect-config does: JSON with one blank per level.
func pretty(v any) []byte {
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return []byte("null")
	}
	return b
}

package grains

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/textproto"
	"path"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/brine-salt/brine/internal/python/pyjson"
)

// metadataAddr is the address of cloud providers' metadata server.
const metadataAddr = "169.254.169.254:80"

// Limits of what is read from the metadata server.
const (
	maxMetadataRequests = 500
	maxMetadataBody     = 1 << 20
	maxMetadataDepth    = 16
)

// metadata returns everything below latest/ on the metadata server, if the option metadata_server_grains is on
// and the server answers within 100 ms (salt/grains/metadata.py).
func metadata(ctx context.Context, h *host) (map[string]any, error) {
	if !truth(h.o.Opts["metadata_server_grains"]) || !h.live {
		return nil, nil
	}
	c := metadataClient{addr: metadataAddr}
	return c.all(ctx)
}

// metadataClient is a minimal HTTP client for this server. net/http would double the size of a small agent.
type metadataClient struct {
	addr     string
	token    string
	requests int
}

func (c *metadataClient) all(ctx context.Context) (map[string]any, error) {
	probe := net.Dialer{Timeout: 100 * time.Millisecond}
	conn, err := probe.DialContext(ctx, "tcp", c.addr)
	if err != nil {
		return nil, nil //nolint:nilerr // without a server there are no such grains
	}
	conn.Close()
	r, err := c.get(ctx, "GET", "/latest/")
	if err != nil || r.status != 200 {
		r, err = c.get(ctx, "PUT", "/latest/api/token")
		if err != nil || r.status != 200 {
			return nil, err
		}
		c.token = strings.TrimSpace(r.body)
	}
	v, err := c.search(ctx, "latest/", 0)
	m, _ := v.(map[string]any)
	return m, err
}

// search reads a directory and everything below it.
func (c *metadataClient) search(ctx context.Context, prefix string, depth int) (any, error) {
	if depth > maxMetadataDepth {
		return nil, errors.New("cannot read the metadata server: too deep")
	}
	r, err := c.get(ctx, "GET", "/"+prefix)
	if err != nil {
		return nil, err
	}
	if r.contentType == "application/octet-stream" {
		return r.body, nil
	}
	found := map[string]any{}
	for line := range strings.SplitSeq(r.body, "\n") {
		var value any
		key := line
		switch {
		case strings.HasSuffix(line, "/"):
			key = strings.TrimSuffix(line, "/")
			value, err = c.search(ctx, path.Join(prefix, line)+"/", depth+1)
		case line == "user-data":
			value, err = c.text(ctx, path.Join(prefix, line), false)
		case prefix == "latest/":
			value, err = c.search(ctx, path.Join(prefix, line)+"/", depth+1)
		case strings.HasSuffix(line, "dynamic"), strings.HasSuffix(line, "meta-data"):
			value, err = c.search(ctx, path.Join(prefix, line), depth+1)
		case strings.Count(line, "=") == 1:
			var name string
			name, key, _ = strings.Cut(line, "=")
			value, err = c.search(ctx, path.Join(prefix, name), depth+1)
		default:
			value, err = c.text(ctx, path.Join(prefix, line), true)
		}
		if err != nil {
			return found, err
		}
		found[key] = value
	}
	return found, nil
}

// text reads a leaf. JSON values are decoded as in Salt.
func (c *metadataClient) text(ctx context.Context, name string, decode bool) (any, error) {
	r, err := c.get(ctx, "GET", "/"+name)
	if err != nil {
		return nil, err
	}
	if decode {
		if v, err := pyjson.Parse([]byte(r.body)); err == nil {
			return v, nil
		}
	}
	return r.body, nil
}

type metadataReply struct {
	status      int
	contentType string
	body        string
}

// get makes one request on its own connection. It uses HTTP/1.0, where the body ends with the connection.
func (c *metadataClient) get(ctx context.Context, method, name string) (metadataReply, error) {
	if c.requests++; c.requests > maxMetadataRequests {
		return metadataReply{}, errors.New("cannot read the metadata server: too many entries")
	}
	if strings.ContainsAny(name, " \r\n") {
		return metadataReply{},
			fmt.Errorf("cannot request %q from the metadata server: bad name", name)
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", c.addr)
	if err != nil {
		return metadataReply{}, fmt.Errorf("cannot reach the metadata server: %w", err)
	}
	defer conn.Close()
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(DefaultTimeout)
	}
	if err := conn.SetDeadline(deadline); err != nil {
		return metadataReply{}, err
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	request := method + " " + name + " HTTP/1.0\r\nHost: 169.254.169.254\r\n"
	switch {
	case method == "PUT":
		request += "X-aws-ec2-metadata-token-ttl-seconds: 21600\r\nContent-Length: 0\r\n"
	case c.token != "":
		request += "X-aws-ec2-metadata-token: " + c.token + "\r\n"
	}
	if _, err := io.WriteString(conn, request+"\r\n"); err != nil {
		return metadataReply{}, fmt.Errorf("cannot ask the metadata server: %w", err)
	}
	return readReply(io.LimitReader(conn, maxMetadataBody))
}

func readReply(r io.Reader) (metadataReply, error) {
	t := textproto.NewReader(bufio.NewReader(r))
	line, err := t.ReadLine()
	if err != nil {
		return metadataReply{}, fmt.Errorf("cannot read the metadata server's answer: %w", err)
	}
	f := strings.Fields(line)
	if len(f) < 2 || !strings.HasPrefix(f[0], "HTTP/") {
		return metadataReply{}, fmt.Errorf("cannot read the metadata server's answer %.40q", line)
	}
	status, err := strconv.Atoi(f[1])
	if err != nil {
		return metadataReply{}, fmt.Errorf("cannot read the metadata server's answer %.40q", line)
	}
	head, err := t.ReadMIMEHeader()
	if err != nil {
		return metadataReply{}, fmt.Errorf("cannot read the metadata server's answer: %w", err)
	}
	body, err := io.ReadAll(t.R)
	if err != nil {
		return metadataReply{}, fmt.Errorf("cannot read the metadata server's answer: %w", err)
	}
	text := string(body)
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, "\uFFFD")
	}
	return metadataReply{status: status, contentType: head.Get("Content-Type"), body: text}, nil
}

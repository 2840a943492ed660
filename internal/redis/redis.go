// Package redis implements the part of the Redis protocol (RESP2) that Salt's redis module and returner need.
//
// github.com/gomodule/redigo (36 KiB) is not used: it allocates the length that a server announces before it has read
// any data. The reply "*9000000000000000000" makes it panic, and it does not limit the nesting of lists.
package redis

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"
)

// Client is a connection to a server. It is not safe for concurrent use.
type Client struct {
	conn net.Conn
	r    *bufio.Reader
}

const (
	// timeout limits one exchange.
	timeout = 30 * time.Second
	// maxReply and maxItems limit the replies of a server.
	maxReply = 64 << 20
	maxItems = 1 << 20
)

// ServerError is an error from the server.
type ServerError string

func (e ServerError) Error() string { return "redis: " + string(e) }

// Dial connects to a server. After ctx has ended the connection fails.
func Dial(ctx context.Context, network, addr string) (*Client, error) {
	d := net.Dialer{Timeout: timeout}
	conn, err := d.DialContext(ctx, network, addr)
	if err != nil {
		return nil, fmt.Errorf("cannot connect to redis: %w", err)
	}
	context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	return &Client{conn: conn, r: bufio.NewReader(conn)}, nil
}

// Close closes the connection.
func (c *Client) Close() { c.conn.Close() }

// Do sends a command and returns the reply: nil, a string, an int64 or a list of them.
func (c *Client) Do(args ...string) (any, error) {
	b := fmt.Appendf(nil, "*%d\r\n", len(args))
	for _, a := range args {
		b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(a), a)
	}
	if err := c.conn.SetDeadline(time.Now().Add(timeout)); err != nil {
		return nil, err
	}
	if _, err := c.conn.Write(b); err != nil {
		return nil, fmt.Errorf("cannot write to redis: %w", err)
	}
	items := 0
	v, err := c.read(0, &items)
	var said ServerError
	if err != nil && !errors.As(err, &said) {
		err = fmt.Errorf("cannot read from redis: %w", err)
	}
	return v, err
}

var errProtocol = errors.New("the answer is not that of a redis server")

func (c *Client) read(depth int, items *int) (any, error) {
	if *items++; *items > maxItems || depth > 4 {
		return nil, errProtocol
	}
	line, err := c.line()
	if err != nil {
		return nil, err
	}
	if line == "" {
		return nil, errProtocol
	}
	rest := line[1:]
	switch line[0] {
	case '+':
		return rest, nil
	case '-':
		return nil, ServerError(rest)
	case ':':
		return strconv.ParseInt(rest, 10, 64)
	}
	n, err := strconv.Atoi(rest)
	if err != nil || n < -1 {
		return nil, errProtocol
	}
	if n == -1 {
		return nil, nil
	}
	switch line[0] {
	case '$':
		if n > maxReply {
			return nil, errProtocol
		}
		b := make([]byte, n+2)
		if _, err := io.ReadFull(c.r, b); err != nil {
			return nil, err
		}
		return string(b[:n]), nil
	case '*':
		if n > maxItems {
			return nil, errProtocol
		}
		var list []any
		for range n {
			v, err := c.read(depth+1, items)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		return list, nil
	}
	return nil, errProtocol
}

func (c *Client) line() (string, error) {
	b, err := c.r.ReadSlice('\n')
	if err != nil {
		return "", err
	}
	if len(b) < 2 || b[len(b)-2] != '\r' {
		return "", errProtocol
	}
	return string(b[:len(b)-2]), nil
}

// Scan returns the keys that match a pattern.
func (c *Client) Scan(pattern string) ([]string, error) {
	var keys []string
	seen := map[string]bool{}
	cursor := "0"
	for {
		v, err := c.Do("SCAN", cursor, "MATCH", pattern, "COUNT", "1000")
		if err != nil {
			return nil, err
		}
		pair, _ := v.([]any)
		if len(pair) != 2 {
			return nil, errProtocol
		}
		list, _ := pair[1].([]any)
		for _, x := range list {
			if s, ok := x.(string); ok && !seen[s] {
				seen[s] = true
				keys = append(keys, s)
			}
		}
		if cursor, _ = pair[0].(string); cursor == "0" || cursor == "" || len(keys) > maxItems {
			return keys, nil
		}
	}
}

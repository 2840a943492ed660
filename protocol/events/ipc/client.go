package ipc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"time"

	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/events"
)

func isEOF(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) }

// Client listens to the events of a master on this host, ours or stock.
type Client struct {
	conn net.Conn
	r    *reader
}

// Dial connects to the publishing socket below a master's sock_dir. Events fired before the call are not seen.
func Dial(ctx context.Context, sockDir string) (*Client, error) {
	var d net.Dialer
	path := filepath.Join(sockDir, PubName)
	c, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("cannot listen to events: %w", err)
	}
	return &Client{c, newReader(c)}, nil
}

// Next waits for the next event. The error is ctx.Err(), or io.EOF when the master went away. After an error of ctx the
// client can be used again only if no part of an event had arrived, so callers should treat every error as final.
func (c *Client) Next(ctx context.Context) (events.Event, error) {
	if err := ctx.Err(); err != nil {
		return events.Event{}, err
	}
	stop := context.AfterFunc(ctx, func() { c.conn.SetReadDeadline(time.Unix(1, 0)) })
	tag, data, err := c.r.next()
	if !stop() && ctx.Err() != nil && err != nil {
		return events.Event{}, ctx.Err()
	}
	if err != nil {
		return events.Event{}, err
	}
	return events.Event{Tag: tag, Data: data}, nil
}

// Close ends the connection.
func (c *Client) Close() error { return c.conn.Close() }

// Fire writes one event to the master on this host, as salt-key does after a change. data gets a _stamp when it has none.
func Fire(ctx context.Context, sockDir, tag string, data map[string]any) error {
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", filepath.Join(sockDir, PullName))
	if err != nil {
		return fmt.Errorf("cannot fire event %q: %w", tag, err)
	}
	defer c.Close()
	stamped := map[string]any{"_stamp": protocol.Stamp(time.Now())}
	for k, v := range data {
		stamped[k] = v
	}
	body, err := frame(tag, stamped, false)
	if err != nil {
		return fmt.Errorf("cannot fire event %q: %w", tag, err)
	}
	if t, ok := ctx.Deadline(); ok {
		c.SetWriteDeadline(t)
	}
	if _, err := c.Write(body); err != nil {
		return fmt.Errorf("cannot fire event %q: %w", tag, err)
	}
	return nil
}

package ipc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"time"

	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/events"
)

func isEOF(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) }

// A Client listens to the events of a brine or stock master or minion on this host.
type Client struct {
	conn net.Conn
	r    *reader
}

// Dial connects to the socket that sends events. Events fired before the call are not received.
func Dial(ctx context.Context, a Sockets) (*Client, error) {
	c, err := a.dial(ctx, a.Pub)
	if err != nil {
		return nil, fmt.Errorf("cannot listen to events: %w", err)
	}
	return &Client{c, newReader(c)}, nil
}

// Next waits for the next event. The error is ctx.Err(), or io.EOF if the server closed the connection. Every error
// is final: after an error of ctx a part of an event may have been read.
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
	return events.Of(tag, data), nil
}

// Close ends the connection.
func (c *Client) Close() error { return c.conn.Close() }

// Fire sends one event to a master or minion on this host, as salt-key does after a change. data gets a _stamp if
// it has none.
func Fire(ctx context.Context, a Sockets, tag string, data map[string]any) error {
	c, err := a.dial(ctx, a.Pull)
	if err != nil {
		return fmt.Errorf("cannot fire event %q: %w", tag, err)
	}
	defer c.Close()
	if data["_stamp"] == nil {
		if data = maps.Clone(data); data == nil {
			data = map[string]any{}
		}
		data["_stamp"] = protocol.Stamp(time.Now())
	}
	body, err := frameEvent(tag, data, !takesPlain(c))
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

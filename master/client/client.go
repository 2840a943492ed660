// Package client commands a running Salt master from the same host, as stock `salt` does. It publishes jobs
// through the master's request port with the key file for local users, and receives returns through the event
// socket. The master may be brine's stand-alone master or stock Salt. An embedded master is commanded through
// its own methods instead. Salt's source: salt/client/__init__.py.
package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"sync"
	"time"

	"github.com/brine-salt/brine/master/internal/fields"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/events/ipc"
	"github.com/brine-salt/brine/protocol/payload"
	"github.com/brine-salt/brine/protocol/transport"
)

// Errors that callers may test for.
var (
	// ErrNotRunning means that no master uses the socket directory.
	ErrNotRunning = errors.New("the master is not running")
	// ErrTimeout means that the master did not answer in time.
	ErrTimeout = errors.New("the master does not answer")
	// ErrNoMatch means that the master knows no minion for a target. No job was published.
	ErrNoMatch = errors.New("no minions matched the target")
	// ErrNoAnswer means that no minion of a batch answered a ping. No job was published.
	ErrNoAnswer = errors.New("no minion answered")
	// ErrAuthentication and ErrAuthorization are refusals by the master. The texts are Salt's.
	ErrAuthentication = errors.New("Authentication error occurred.") //nolint:staticcheck
	ErrAuthorization  = errors.New("Authorization error occurred.")  //nolint:staticcheck
)

// PublishError is any other refusal by the master.
type PublishError struct{ Msg string }

func (e *PublishError) Error() string { return e.Msg }

// Options configure a Client. Dialer, Addr and SockDir are required.
type Options struct {
	// Dialer is the transport of the master's request port.
	Dialer transport.Dialer
	// Client holds the connection's options; RequestAddr is set from Addr.
	Client transport.ClientOptions
	// Addr is the master's request port, "host:port".
	Addr string
	// Events are the addresses of the master's event bus; the zero value means sockets below SockDir.
	Events ipc.Sockets
	// SockDir is the master's sock_dir, CacheDir its cachedir, PKIDir its pki_dir.
	SockDir, CacheDir, PKIDir string
	// Minions provides a cluster's minion data; nil means the files in CacheDir and PKIDir.
	Minions Minions
	// User is the user name under which commands are recorded ("root", "sudo_alice"). KeyFile holds the key
	// that proves it.
	User, KeyFile string
	// HashType determines the directories of the job cache; empty means sha256.
	HashType string
	// PublishPort is the port to which minions are connected. It is used to report which are not; 0 omits that.
	PublishPort int
	// PublishTimeout limits how long the master may take to answer; 0 means 30 s.
	PublishTimeout time.Duration
	// OrderMasters is for a master of masters: an empty target is not an error, and timeouts are sent along.
	OrderMasters bool
	// Log receives log messages; nil discards them.
	Log *slog.Logger
}

// Client is a connection to a master. Its methods are safe for concurrent use. Close it after use.
type Client struct {
	o   Options
	log *slog.Logger
	req transport.Requester
	bus *bus

	mu          sync.Mutex // guards the fields below
	key         string
	connected   map[string]bool
	connectedAt time.Time
}

// New returns a Client. It connects at its first use.
func New(o Options) (*Client, error) {
	if o.Dialer == nil {
		return nil, errors.New("cannot reach the master: no transport given")
	}
	if err := transport.CheckAddr(o.Addr); err != nil {
		return nil, err
	}
	if o.HashType == "" {
		o.HashType = "sha256"
	}
	if o.PublishTimeout <= 0 {
		o.PublishTimeout = 30 * time.Second
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Events.Pub == "" {
		o.Events = ipc.Master(o.SockDir)
	}
	o.Client.RequestAddr = o.Addr
	o.Client.Log = o.Log
	req, err := o.Dialer.Requester(o.Client)
	if err != nil {
		return nil, fmt.Errorf("cannot reach the master: %w", err)
	}
	c := &Client{o: o, log: o.Log, req: req, bus: newBus(o.Events, o.Log)}
	c.readKey()
	return c, nil
}

// Close closes all connections.
func (c *Client) Close() error {
	c.bus.close()
	err := c.req.Close()
	if c.o.Minions != nil {
		err = errors.Join(err, c.o.Minions.Close())
	}
	return err
}

// readKey reads the local key and reports whether it has changed. Without a key the master refuses requests.
func (c *Client) readKey() bool {
	b, err := os.ReadFile(c.o.KeyFile)
	if err != nil {
		c.log.Debug("Cannot read local key", "err", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	changed := c.key != string(b)
	c.key = string(b)
	return changed
}

// WhyNot explains to operators why the master may refuse this user's key file. The master itself gives no
// reason to unauthenticated peers.
func (c *Client) WhyNot() string {
	if _, err := os.ReadFile(c.o.KeyFile); err != nil {
		return fmt.Sprintf("there is no key to show to the master: %v. Run the command on the "+
			"master's host, with its configuration, as its user or one of publisher_acl", err)
	}
	return fmt.Sprintf("%s is not the key file of the master that runs: compare cachedir and "+
		"ret_port with the configuration of that master", c.o.KeyFile)
}

// Command is a job to publish.
type Command struct {
	// Fun is a function name, or []string for several functions; Arg then has one list for each.
	Fun any
	Arg []any
	// Tgt is a string, or []string for list targets. TgtType is Salt's tgt_type; "" means glob.
	Tgt     any
	TgtType string
	// Ret names returners, separated by commas.
	Ret string
	// JID is the job id; empty lets the master choose.
	JID string
	// Kwargs are additional fields of the request: delimiter, metadata, ret_config, module_executors, …
	Kwargs map[string]any
}

// Published is the master's reply about a new job.
type Published struct {
	JID string
	// Minions are the minions expected to return. Missing are ids of a list target that the master does not
	// know.
	Minions, Missing []string
}

// Publish sends a job and does not wait for returns. It returns ErrNoMatch if the target matches no minion.
func (c *Client) Publish(ctx context.Context, cmd Command) (Published, error) {
	if marker := c.o.Events.Marker; marker != "" {
		if _, err := os.Stat(marker); err != nil {
			return Published{}, fmt.Errorf("%w: %w", ErrNotRunning, err)
		}
	}
	reply, err := c.publishJob(ctx, cmd)
	if err == nil && isEmpty(reply) && c.readKey() {
		reply, err = c.publishJob(ctx, cmd)
	}
	if err != nil {
		return Published{}, err
	}
	return c.readPublished(reply)
}

// isEmpty reports whether a reply is empty, which is a refusal without a reason.
func isEmpty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case map[string]any:
		return len(v) == 0
	}
	return false
}

func (c *Client) publishJob(ctx context.Context, cmd Command) (any, error) {
	c.mu.Lock()
	key := c.key
	c.mu.Unlock()
	load := map[string]any{"cmd": "publish", "fun": cmd.Fun, "arg": cmd.Arg, "tgt": cmd.Tgt,
		"tgt_type": cmd.TgtType,
		"ret":      cmd.Ret, "jid": cmd.JID, "key": key, "user": c.o.User}
	if cmd.Arg == nil {
		load["arg"] = []any{}
	}
	if cmd.TgtType == "" {
		load["tgt_type"] = "glob"
	}
	if len(cmd.Kwargs) > 0 {
		load["kwargs"] = maps.Clone(cmd.Kwargs)
	}
	if c.o.OrderMasters {
		load["to"] = int64(c.o.PublishTimeout / time.Second)
	}
	return c.Request(ctx, load)
}

// Request sends a clear request (publish, wheel, runner, …) and returns the master's reply unchanged.
func (c *Client) Request(ctx context.Context, load map[string]any) (any, error) {
	v, err := c.requestOrdered(ctx, load)
	return payload.Plain(v), err
}

// requestOrdered is Request with every map of the reply as a payload.OrderedMap.
func (c *Client) requestOrdered(ctx context.Context, load map[string]any) (any, error) {
	body, err := protocol.Envelope{Enc: protocol.EncClear, Load: load,
		Version: protocol.Version}.Marshal()
	if err != nil {
		return nil, fmt.Errorf("cannot pack request: %w", err)
	}
	wait, cancel := context.WithTimeout(ctx, c.o.PublishTimeout)
	defer cancel()
	b, err := c.req.Request(wait, body)
	if err != nil {
		if ctx.Err() == nil && wait.Err() != nil {
			return nil, fmt.Errorf("%w: %w", ErrTimeout, err)
		}
		return nil, fmt.Errorf("cannot ask the master: %w", err)
	}
	v, err := payload.UnmarshalOrdered(b, payload.Limits{})
	if err != nil {
		return nil, fmt.Errorf("cannot read the master's answer: %w", err)
	}
	return v, nil
}

// readPublished parses the reply to a publish.
func (c *Client) readPublished(reply any) (Published, error) {
	if text, ok := payload.Text(reply); ok {
		if text == "" {
			return Published{}, ErrAuthentication
		}
		return Published{}, &PublishError{text}
	}
	m, ok := payload.Map(reply)
	if !ok || len(m) == 0 {
		return Published{}, ErrAuthentication
	}
	if e, ok := m["error"]; ok {
		return Published{}, refusalError(e)
	}
	load, ok := payload.Map(m["load"])
	if !ok {
		return Published{}, &PublishError{fmt.Sprintf("the master's answer has no load: %.80v",
			reply)}
	}
	p := Published{Minions: fields.Texts(load["minions"]), Missing: fields.Texts(load["missing"])}
	p.JID, _ = payload.Text(load["jid"])
	if e, ok := payload.Text(load["error"]); ok && load["minions"] == nil {
		return Published{}, &PublishError{e}
	}
	if p.JID == "" || len(p.Minions) == 0 && !c.o.OrderMasters {
		return p, ErrNoMatch
	}
	if !protocol.ValidJID(p.JID) {
		return Published{}, &PublishError{fmt.Sprintf("the master's answer has no usable job id: "+
			"%.40q", p.JID)}
	}
	return p, nil
}

// refusalError returns the error in a reply.
func refusalError(e any) error {
	m, ok := payload.Map(e)
	if !ok {
		return &PublishError{fmt.Sprint(e)}
	}
	name, _ := payload.Text(m["name"])
	msg, _ := payload.Text(m["message"])
	switch name {
	case "AuthenticationError":
		return ErrAuthentication
	case "AuthorizationError":
		return ErrAuthorization
	}
	return &PublishError{msg}
}

// Package transport says what a Salt connection is, without being one: the small interfaces that the minion and the master
// program against, and their options. The connections themselves are zeromq (Salt's default), tcp, ws and mem, one package
// each, so that a program links only what it chose.
//
// There are two channels. On the request channel a minion sends a packed envelope and gets a packed value back; on the
// publish channel a master sends packed envelopes one way. This package and those below it move bytes: nothing here
// decrypts, verifies or interprets an envelope.
//
// Bytes of peers are limited before they are allocated, every wait has a deadline or an owner, and a slow or hostile peer
// harms only itself. The behaviour that all transports share is the suite in transporttest.
//
// Salt's sources: salt/transport/base.py, zeromq.py, tcp.py, ws.py.
package transport

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"time"
)

// Defaults of the options, used where a field is zero.
const (
	// DefaultMaxMessage is the largest message in bytes that is accepted from a peer; Python's tcp stream buffer has it too.
	DefaultMaxMessage = 100 << 20
	// DefaultMaxUnauthenticated bounds the bytes of all large messages that unapproved peers are sending at one time.
	DefaultMaxUnauthenticated = 256 << 20
	// SmallMessage is the size in bytes up to which a message of an unapproved peer counts as small: it has a share of 32 MiB for
	// all of them, a larger one of MaxUnauthenticated.
	SmallMessage = 64 << 10
	// FreeMessage is the size in bytes up to which a message is read without a share. A sign-in has fewer.
	FreeMessage = 4 << 10
	// DefaultPubHWM is Salt's pub_hwm: messages that may wait for one subscriber.
	DefaultPubHWM = 1000
	// DefaultPubBytes bounds the bytes that may wait for one subscriber.
	DefaultPubBytes = 64 << 20
	// DefaultMaxHandshakes is how many connections may be in their handshake at one time.
	DefaultMaxHandshakes = 1024
	// DefaultHandshakeTimeout is how long a peer has for the whole handshake.
	DefaultHandshakeTimeout = 10 * time.Second
	// DefaultWriteTimeout is how long a peer may take none of the bytes sent to it.
	DefaultWriteTimeout = 30 * time.Second
	// DefaultReadTimeout is how long a message that has begun may stand still.
	DefaultReadTimeout = 60 * time.Second
	// DefaultDialTimeout is how long one attempt to connect may take, over all addresses of a name.
	DefaultDialTimeout = 10 * time.Second
	// DefaultReconDefault and DefaultReconMax are the first and the last window of the reconnect delay. Salt's recon_default
	// is 1 s and its recon_max 10 s; a window of 5 s brings a minion back within 5 s of a healed network.
	DefaultReconDefault = 250 * time.Millisecond
	DefaultReconMax     = 5 * time.Second
	// DefaultKeepIdle is how long a client keeps a request connection that it does not use: the master has ten thousand clients.
	DefaultKeepIdle = 60 * time.Second
	// DefaultProbe finds a publish path that is dead beyond the reach of keepalive. Keepalive finds any other within 45 seconds;
	// asking as often would double the wake-ups of an idle minion.
	DefaultProbe = 2 * time.Minute
)

// Errors that callers test for, each wrapped with the object it concerns.
var (
	// ErrClosed: the server, requester or subscriber was closed by its owner.
	ErrClosed = errors.New("transport: closed")
	// ErrTooBig: a message exceeds the size limit. The connection it came over is gone.
	ErrTooBig = errors.New("transport: message too big")
	// ErrNoReply: the server closed the connection instead of answering.
	ErrNoReply = errors.New("transport: no reply")
	// ErrProtocol: the peer does not speak this transport. The connection is gone.
	ErrProtocol = errors.New("transport: protocol error")
)

// Handler answers one request: body is a packed envelope, peer the remote address ("ip:port"), the result the packed reply. A nil
// result closes the connection without an answer. It is called from many goroutines at once, none of which reads a connection, so that
// no idle connection keeps the stack that answering took, and owns body. ctx ends when
// the server is closed. A panic is logged and closes the connection only. See Approve.
type Handler func(ctx context.Context, peer string, body []byte) []byte

// Publisher sends to all subscribers.
type Publisher interface {
	// Publish sends msg, a packed envelope, to every subscriber, or, when topics is not nil, to the minions with these ids, each of
	// which is named once. A subscriber without a name (Name, or a presence frame of tcp) may be any of them and gets everything: minions
	// find out themselves whether they are meant. Of an address without a minion (MinionAt) that holds for a few subscribers; the others get msg if a
	// minion is found there within seconds. With zeromq's Filter they chose topics themselves. Nor does one miss msg whose connection
	// was accepted before and whose subscription comes within five seconds, unless there is isolation. It never blocks on a subscriber
	// and keeps msg, which must not be changed afterwards. The error is ErrClosed.
	Publish(msg []byte, topics []string) error
	// Unnamed says whether the one subscriber with a remote address, as Subscriber told it, is there and has no name yet.
	Unnamed(peer string) bool
	// PublishTo sends msg to that subscriber, and says the same.
	PublishTo(peer string, msg []byte) bool
	// Name says which minion the subscriber with a remote address is, once it has proved that, and whether there is one.
	Name(peer, id string) bool
	// MinionAt reports whether a subscriber with a remote address comes from where a minion was within the last hour: a peer that Approve was
	// called for, or a subscriber with a name.
	MinionAt(peer string) bool
	// Subscribers is the number of subscribed connections.
	Subscribers() int
	// Reach says how many of some ids are names of subscribers, and how many subscribers, or connections that may become one, may be anybody.
	Reach(ids ...string) (named, nameless int)
	// Present lists the names of subscribers, sorted, each once.
	Present() []string
	// Dropped is how many subscribers were cut off because they did not take their messages in time.
	Dropped() int64
}

// Server is a listening master side: both channels.
type Server interface {
	Publisher
	// PublishAddr and RequestAddr are the bound addresses.
	PublishAddr() net.Addr
	RequestAddr() net.Addr
	// Shutdown stops accepting, lets running handlers finish and their replies leave until ctx ends, then closes.
	Shutdown(ctx context.Context) error
	// Close ends all connections and returns when every goroutine of the server is gone. It may be called again.
	Close() error
}

// ServerOptions say how a master listens. The zero value of each field is usable, Handler apart.
type ServerOptions struct {
	// PublishListener and RequestListener are used when given (and closed with the server); else PublishAddr and RequestAddr
	// ("host:port", port 0 = any, empty host = all addresses) are bound.
	PublishListener, RequestListener net.Listener
	PublishAddr, RequestAddr         string
	// Wrap puts a layer, TLS, over the listeners; see tlsconf. A connection with a HandshakeContext method has it called
	// under the handshake deadline. zeromq has no TLS and ignores it.
	Wrap func(net.Listener) net.Listener
	// Handler answers requests. Needed.
	Handler Handler
	// Presence judges a tcp presence frame, whose body load is a packed envelope, and names the minion behind it; peer is its remote address.
	Presence func(peer string, load []byte) (id string, ok bool)
	// Subscriber hears that a subscription began or ended; peer is its remote address. It is called from many goroutines and must
	// not block.
	Subscriber func(peer string, up bool)
	// Filter is Salt's zmq_filtering: topic frames before envelopes. Both sides must agree.
	Filter bool
	// Isolate, while it says true, keeps publishes from subscribers that have no name: these get what PublishTo sends them only. nil is never.
	Isolate func() bool
	// PubHWM and PubBytes bound what may wait for one subscriber, in messages and bytes. Over the limit it is cut off.
	PubHWM   int
	PubBytes int64
	// MaxMessage is the largest request in bytes.
	MaxMessage int64
	// MaxUnauthenticated bounds, over all connections whose handler never called Approve, the bytes of messages above
	// SmallMessage that are being received or handled at one time. Others wait their turn. It is at least MaxMessage.
	MaxUnauthenticated int64
	// MaxConnections bounds the connections of both ports. Beyond it a newcomer takes the place of a connection whose peer is not
	// known, of the address that has most of these. 0 is what the process may open, less what it needs for files.
	MaxConnections int
	// MaxHandshakes is how many connections may be in their handshake; others wait, and the oldest is closed when it takes a second.
	MaxHandshakes int
	// HandshakeTimeout, ReadTimeout (for a message that has begun) and WriteTimeout (without progress) are deadlines.
	HandshakeTimeout, ReadTimeout, WriteTimeout time.Duration
	// KeepAlive is set on accepted connections of TCP. Zero finds a dead path of a subscriber within 18 seconds, on Linux without
	// an end of the connection, which may come back to life.
	KeepAlive KeepAlive
	// Log gets one line per refused or dropped peer; nil means silent.
	Log *slog.Logger
}

// ClientOptions say how a minion connects. The zero value of each field is usable, the addresses apart.
type ClientOptions struct {
	// RequestAddr and PublishAddr are "host:port"; JoinHostPort makes one from Salt's spellings. A name is resolved anew at every
	// connection, and all its addresses are tried.
	RequestAddr, PublishAddr string
	// RequestSource and PublishSource bind the local end: "ip", "ip:port" or ":port" (source_ret_port, source_publish_port).
	RequestSource, PublishSource string
	// Dial replaces the dialer; nil means NetDial, with KeepAlive and the source applied.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// Wrap puts a layer, TLS, over a dialled connection; host is the name that was dialled. See tlsconf. zeromq ignores it.
	Wrap func(ctx context.Context, c net.Conn, host string) (net.Conn, error)
	// KeepAlive finds dead paths. Zero means within 45 seconds.
	KeepAlive KeepAlive
	// MaxMessage is the largest reply or publish in bytes.
	MaxMessage int64
	// DialTimeout is for one attempt to connect, HandshakeTimeout for what follows it, WriteTimeout for bytes not taken,
	// ReadTimeout for a publish that has begun and stands still. How long a reply may take is the context's affair.
	DialTimeout, HandshakeTimeout, ReadTimeout, WriteTimeout time.Duration
	// ReconDefault and ReconMax bound the window of the reconnect delay, which doubles from the one to the other. The
	// delay is random in the whole window with ReconRandomize, in its upper half without.
	ReconDefault, ReconMax time.Duration
	ReconRandomize         bool
	// Probe is how often a subscriber asks its publisher for a sign of life, where the transport has such a question (zeromq): 0
	// means DefaultProbe, negative never. A publisher that has answered before and does not within a quarter of that is left.
	Probe time.Duration
	// KeepIdle is how long a request connection without requests is kept. Stock minions keep theirs for ever.
	KeepIdle time.Duration
	// ID is the minion's id, for topics.
	ID string
	// Filter is Salt's zmq_filtering: subscribe to the topics of ID only.
	Filter bool
	// Presence makes the packed envelope that tcp sends first on every publish connection; nil sends none. An error is
	// reported as State.Err and counts as a failed attempt.
	Presence func() ([]byte, error)
	// OnState hears of every change of a subscriber's connection, one call at a time, in order. It must not block for long
	// and must not call the subscriber's Close.
	OnState func(State)
	// OnWork is called after a connection did something that nobody asked for: it sent or answered a probe, or ended because it was idle.
	// Programs that give memory back when they are idle do so again. Nil is nobody; it must not block.
	OnWork func()
	// OnRetry hears why a connection for a request could not be made, each time that it is tried again within one request. It
	// must not block.
	OnRetry func(err error)
	// Log gets one line per change of state; nil means silent.
	Log *slog.Logger
}

// State is what a subscriber knows of its connection.
type State struct {
	Connected  bool
	Addr       string // remote address ("ip:port") when connected, else the address last tried
	Err        error  // why it is not connected; nil when connected, before the first attempt, and after Close
	Reconnects int    // connections made after the first
}

// Requester sends requests. It keeps idle connections for later requests, one request at a time on each (tcp: many), and never takes a
// late answer for a later request. Safe for concurrent use.
type Requester interface {
	// Request sends body, a packed envelope, and returns the packed reply. Connecting is tried, with backoff, until ctx ends,
	// as Salt does; once the request may have reached the server it is not sent again. The error wraps ctx.Err() and
	// the last reason, or ErrNoReply, ErrTooBig, ErrProtocol, ErrClosed.
	Request(ctx context.Context, body []byte) ([]byte, error)
	// Close ends running requests and all connections.
	Close() error
}

// Subscriber receives publishes. It reconnects for ever, until Close or the end of the context it was made with.
type Subscriber interface {
	// Messages delivers packed envelopes in order. It is closed after Close. A receiver that does not keep up
	// is cut off by the master, and reconnects.
	Messages() <-chan []byte
	State() State
	// Reset drops the connection, if any, and connects anew at once: for a caller that knows it to be deaf.
	Reset()
	Close() error
}

// Dialer makes the client side of one transport. Both methods check the options and return at once; connecting goes on
// behind them.
type Dialer interface {
	Requester(o ClientOptions) (Requester, error)
	Subscribe(ctx context.Context, o ClientOptions) (Subscriber, error)
}

// Listen is the shape of each transport package's Listen.
type Listen func(o ServerOptions) (Server, error)

type approveKey struct{}

// Approve is called by a Handler once it knows the peer: the connection the request came over is no longer subject to
// ServerOptions.MaxUnauthenticated. Outside of a handler's context it does nothing.
func Approve(ctx context.Context) {
	if f, ok := ctx.Value(approveKey{}).(func()); ok {
		f()
	}
}

// WithApprove gives a handler's context the function that Approve calls. For transports.
func WithApprove(ctx context.Context, f func()) context.Context {
	return context.WithValue(ctx, approveKey{}, f)
}

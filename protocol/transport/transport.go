// Package transport defines Salt's connections: the small interfaces that the minion and the master use, and their
// options. The implementations are zeromq (Salt's default), tcp, ws and mem, one package each, so that a program
// links only the ones it imports.
//
//	minion                        master
//	Requester  ──── packed envelope ───▶  Server (RequestAddr, port 4506)  ──▶ Handler
//	           ◀─── packed reply ──────                                    ◀──
//	Subscriber ◀─── packed envelope ────  Publisher (PublishAddr, port 4505)
//
// There are two channels. On the request channel a minion sends a packed envelope and receives a packed value. On
// the publish channel a master sends packed envelopes one way. This package and those below it move bytes; nothing
// here decrypts, verifies or interprets an envelope.
//
// The size of a peer's message is checked before memory is allocated for it. Every wait has a deadline or ends with
// its context. A slow or hostile peer harms only itself. The suite in transporttest tests this for all transports.
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
	// DefaultMaxMessage is the largest message in bytes that is accepted from a peer. Tornado's stream buffer, which
	// Salt's tcp transport uses, has the same limit.
	DefaultMaxMessage = 100 << 20
	// DefaultMaxUnauthenticated limits the bytes of all large messages that unapproved peers are sending at any
	// moment.
	DefaultMaxUnauthenticated = 256 << 20
	// SmallMessage is the size in bytes up to which a message of an unapproved peer counts as small. Small messages
	// share 32 MiB, larger ones MaxUnauthenticated.
	SmallMessage = 64 << 10
	// FreeMessage is the size in bytes up to which a message is read without counting. A sign-in is smaller.
	FreeMessage = 4 << 10
	// DefaultPubHWM is Salt's pub_hwm: how many messages may wait for one subscriber.
	DefaultPubHWM = 1000
	// DefaultPubBytes limits the bytes that may wait for one subscriber.
	DefaultPubBytes = 64 << 20
	// DefaultMaxHandshakes is how many connections may be in their handshake.
	DefaultMaxHandshakes = 1024
	// DefaultHandshakeTimeout is the time for the whole handshake.
	DefaultHandshakeTimeout = 10 * time.Second
	// DefaultWriteTimeout is how long a write may make no progress.
	DefaultWriteTimeout = 30 * time.Second
	// DefaultReadTimeout is how long the rest of a message may take to continue once it has begun.
	DefaultReadTimeout = 60 * time.Second
	// DefaultDialTimeout is the time for one attempt to connect, including all addresses of a name.
	DefaultDialTimeout = 10 * time.Second
	// DefaultReconDefault and DefaultReconMax are the first and the largest window of the reconnect delay. Salt's
	// recon_default is 1 s and its recon_max 10 s; with a window of 5 s a minion reconnects within 5 s of the
	// network's return.
	DefaultReconDefault = 250 * time.Millisecond
	DefaultReconMax     = 5 * time.Second
	// DefaultKeepIdle is how long a client keeps an unused request connection. A master may have ten thousand clients,
	// and each connection costs it a descriptor.
	DefaultKeepIdle = 60 * time.Second
	// DefaultProbe is the interval of probes, which detect a dead publish path that keepalive cannot see. Keepalive
	// detects all others within 45 seconds; probing that often would double the wake-ups of an idle minion.
	DefaultProbe = 2 * time.Minute
)

// Errors that callers test for. Each is wrapped in an error that names the address or the message.
var (
	// ErrClosed means that the server, requester or subscriber was closed by its owner.
	ErrClosed = errors.New("transport: closed")
	// ErrTooBig means that a message exceeds the size limit. Its connection is closed.
	ErrTooBig = errors.New("transport: message too big")
	// ErrNoReply means that the server closed the connection instead of answering.
	ErrNoReply = errors.New("transport: no reply")
	// ErrProtocol means that the peer does not speak this transport. The connection is closed.
	ErrProtocol = errors.New("transport: protocol error")
)

// A Handler answers one request. body is a packed envelope, which the handler owns; peer is the remote address
// ("ip:port"). It returns the packed reply; nil closes the connection without a reply. It is called from many
// goroutines at once. These are not the goroutines that read connections, so an idle connection does not keep a stack
// as deep as a handler needs. ctx ends when the server is closed. A panic is logged and closes only the connection.
// See Approve.
type Handler func(ctx context.Context, peer string, body []byte) []byte

// A Publisher sends messages to subscribers.
type Publisher interface {
	// Publish sends msg, a packed envelope, to all subscribers, or with topics to the minions with these ids. topics
	// must not contain an id twice. Publish never waits for a subscriber. It keeps msg, which must not be changed
	// afterwards. The error is ErrClosed.
	//
	// A subscriber without a name (see Name, and tcp's presence frame) may be any minion and receives everything;
	// minions decide themselves whether they are targets. At an address without a known minion (see MinionAt) only a
	// few such subscribers receive messages. The others receive msg if a minion becomes known there within seconds.
	// With zeromq's Filter, subscribers choose their topics. A connection that was accepted before the call and
	// subscribes within five seconds also receives msg, unless Isolate returns true.
	Publish(msg []byte, topics []string) error
	// Unnamed reports whether a subscriber with this remote address, as passed to Subscriber, is connected and has no
	// name yet.
	Unnamed(peer string) bool
	// PublishTo sends msg to that subscriber if it has no name, and reports whether it did.
	PublishTo(peer string, msg []byte) bool
	// Name sets the minion id of the subscriber with this remote address, once it has proved it. It reports whether
	// there is such a subscriber.
	Name(peer, id string) bool
	// MinionAt reports whether a minion was seen at a subscriber's address within the last hour: a peer for which
	// Approve was called, or a subscriber with a name.
	MinionAt(peer string) bool
	// Subscribers returns the number of subscribed connections.
	Subscribers() int
	// Named returns how many different names subscribers have.
	Named() int
	// Reach returns how many of the ids are names of subscribers, and how many subscribers and arriving connections
	// have no name and may be any minion.
	Reach(ids ...string) (named, nameless int)
	// Present returns the names of subscribers, sorted, without duplicates.
	Present() []string
	// Dropped returns how many subscribers were disconnected because they did not read their messages in time.
	Dropped() int64
}

// A Server is the listening side of a master, with both channels.
type Server interface {
	Publisher
	// PublishAddr and RequestAddr return the bound addresses.
	PublishAddr() net.Addr
	RequestAddr() net.Addr
	// Shutdown stops accepting, waits until the running handlers have replied or ctx ends, and closes the server.
	Shutdown(ctx context.Context) error
	// Close ends all connections and returns when every goroutine of the server has ended. Further calls do nothing.
	Close() error
}

// ServerOptions configure how a master listens. The zero value of each field is usable, except Handler.
type ServerOptions struct {
	// PublishListener and RequestListener are used if set, and closed with the server. Otherwise the server listens on
	// PublishAddr and RequestAddr ("host:port"; port 0 means any port, an empty host all addresses).
	PublishListener, RequestListener net.Listener
	PublishAddr, RequestAddr         string
	// Wrap adds TLS to a listener; see tlsconf. If its connections have a HandshakeContext method, it is called under
	// the handshake deadline. If they have a method Heard that returns false after that, the handshake has cost no
	// signature, and the address of the peer does not pay for one. zeromq has no TLS and ignores Wrap.
	Wrap func(net.Listener) net.Listener
	// Handler answers requests. It is required.
	Handler Handler
	// Presence checks a tcp presence frame and returns the minion that sent it. load is a packed envelope, peer the
	// remote address.
	Presence func(peer string, load []byte) (id string, ok bool)
	// Subscriber is called when a subscription begins or ends; peer is its remote address. It is called from many
	// goroutines and must not block.
	Subscriber func(peer string, up bool)
	// Filter is Salt's zmq_filtering: topic frames precede envelopes. Both sides must agree.
	Filter bool
	// Isolate, while it returns true, keeps publishes from subscribers without a name. These receive only messages of
	// PublishTo. nil means never.
	Isolate func() bool
	// PubHWM and PubBytes limit the backlog of one subscriber, in messages and bytes. Beyond it the subscriber is
	// disconnected.
	PubHWM   int
	PubBytes int64
	// MaxMessage is the largest request in bytes.
	MaxMessage int64
	// MaxUnauthenticated limits the bytes of messages above SmallMessage that are being received or handled, for all
	// connections whose handler never called Approve. Messages beyond it wait. It is at least MaxMessage.
	MaxUnauthenticated int64
	// MaxConnections limits the connections of both ports. Beyond it a new connection replaces one of an unapproved
	// peer, of the address with the most such connections. 0 means the process's limit of open files, less reserves
	// for files and the HTTP interface.
	MaxConnections int
	// MaxHandshakes is how many connections of a port may be in their handshake. Further ones wait, and the oldest
	// handshake is closed if it takes longer than a second. The same number again is for connections whose
	// address is in debt.
	MaxHandshakes int
	// HandshakeTimeout, ReadTimeout (for a message that has begun) and WriteTimeout (without progress) are
	// deadlines.
	HandshakeTimeout, ReadTimeout, WriteTimeout time.Duration
	// KeepAlive is set on accepted TCP connections. The zero value detects a subscriber's dead path within 18 seconds.
	// On Linux the connection is kept in case the path works again.
	KeepAlive KeepAlive
	// Log receives a record per refused or dropped peer; nil means no log.
	Log *slog.Logger
}

// ClientOptions configure how a minion connects. The zero value of each field is usable, except the addresses.
type ClientOptions struct {
	// RequestAddr and PublishAddr are "host:port"; JoinHostPort builds one from a host as Salt writes it. A name is
	// resolved for every connection, and all its addresses are tried.
	RequestAddr, PublishAddr string
	// RequestSource and PublishSource are the local addresses: "ip", "ip:port" or ":port" (options source_ret_port and
	// source_publish_port).
	RequestSource, PublishSource string
	// Dial replaces the dialer; nil means NetDial with KeepAlive and the source address.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// Wrap adds TLS to a dialled connection; host is the name that was dialled. See tlsconf. zeromq ignores it.
	Wrap func(ctx context.Context, c net.Conn, host string) (net.Conn, error)
	// KeepAlive detects dead paths; its zero value does so within 45 seconds.
	KeepAlive KeepAlive
	// MaxMessage is the largest reply or publish in bytes.
	MaxMessage int64
	// DialTimeout is for one attempt to connect and HandshakeTimeout for the handshake after it. WriteTimeout is for a
	// write without progress, ReadTimeout for a publish that has begun and does not continue. The context of a request
	// limits how long its reply may take.
	DialTimeout, HandshakeTimeout, ReadTimeout, WriteTimeout time.Duration
	// ReconDefault and ReconMax are the first and the largest window of the reconnect delay, which doubles in between.
	// The delay is random in the whole window with ReconRandomize, and in its upper half without it.
	ReconDefault, ReconMax time.Duration
	ReconRandomize         bool
	// Probe is how often a subscriber probes its publisher, on transports with probes (zeromq). 0 means DefaultProbe,
	// a negative value never. The connection is dropped if a publisher that has answered before does not answer within
	// a quarter of Probe.
	Probe time.Duration
	// KeepIdle is how long an unused request connection is kept. Stock minions keep theirs forever.
	KeepIdle time.Duration
	// ID is the minion's id, for topics.
	ID string
	// Filter is Salt's zmq_filtering: subscribe to the topics of ID only.
	Filter bool
	// Presence returns the packed envelope that tcp sends first on every publish connection; nil sends none. An
	// error is reported as State.Err and counts as a failed attempt.
	Presence func() ([]byte, error)
	// OnState is called for every change of a subscriber's connection, one call at a time and in order. It must not
	// block for long and must not call the subscriber's Close.
	OnState func(State)
	// OnWork is called after a connection worked without a caller: it sent or answered a probe, or ended because it
	// was idle. A program that releases memory when idle can do so again. It may be nil and must not block.
	OnWork func()
	// OnRetry is called with the reason each time that connecting for a request failed and will be retried. It must
	// not block.
	OnRetry func(err error)
	// Log receives a record per change of state; nil means no log.
	Log *slog.Logger
}

// State is the state of a subscriber's connection.
type State struct {
	Connected  bool
	Addr       string // remote address ("ip:port") if connected, else the address last tried
	Err        error  // why it is not connected; nil if connected, before the first attempt, and after Close
	Reconnects int    // connections after the first
}

// A Requester sends requests. It keeps idle connections for later requests, with one request at a time on each (many
// on tcp). A late reply is never taken for the reply to a later request. It is safe for concurrent use.
type Requester interface {
	// Request sends body, a packed envelope, and returns the packed reply. It retries connecting, with backoff, until
	// ctx ends, as Salt does. Once the request may have reached the server it is not sent again, because a master
	// would execute it twice. The error wraps ctx.Err() and the last reason, or ErrNoReply, ErrTooBig, ErrProtocol or
	// ErrClosed.
	Request(ctx context.Context, body []byte) ([]byte, error)
	// Close ends running requests and all connections.
	Close() error
}

// A Subscriber receives publishes. It reconnects until Close is called or its context ends.
type Subscriber interface {
	// Messages delivers packed envelopes in order. The channel is closed after Close. A master disconnects a receiver
	// that does not keep up, which then reconnects.
	Messages() <-chan []byte
	State() State
	// Reset drops the current connection, if any, and reconnects at once. Call it when the connection is known to be
	// dead.
	Reset()
	Close() error
}

// A Dialer is the client side of one transport. Both methods check the options and return at once; connecting
// continues in the background.
type Dialer interface {
	Requester(o ClientOptions) (Requester, error)
	Subscribe(ctx context.Context, o ClientOptions) (Subscriber, error)
}

// Listen is the type of each transport package's Listen.
type Listen func(o ServerOptions) (Server, error)

type approveKey struct{}

// Approve is called by a Handler once the peer is authenticated. The connection then no longer counts against
// ServerOptions.MaxUnauthenticated. Outside of a handler's context Approve does nothing.
func Approve(ctx context.Context) {
	if f, ok := ctx.Value(approveKey{}).(func()); ok {
		f()
	}
}

// WithApprove adds the function that Approve calls to a handler's context. For transports.
func WithApprove(ctx context.Context, f func()) context.Context {
	return context.WithValue(ctx, approveKey{}, f)
}

type leftKey struct{}

// Left is called by a Handler before costly work that only its reply needs. It reports whether the peer has closed
// its connection, as a peer does that no longer waits. Outside of a handler's context, and on systems other than
// Linux, it returns false.
func Left(ctx context.Context) bool {
	f, ok := ctx.Value(leftKey{}).(func() bool)
	return ok && f()
}

// WithLeft adds the function that Left calls to a handler's context. For transports.
func WithLeft(ctx context.Context, f func() bool) context.Context {
	return context.WithValue(ctx, leftKey{}, f)
}

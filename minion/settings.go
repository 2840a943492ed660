package minion

import (
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"math"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/conf"
	"github.com/brine-salt/brine/minion/policy"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/crypt"
	"github.com/brine-salt/brine/protocol/transport"
)

// options reads single values of the configuration. A value of the wrong type counts as not set; Salt only
// warns about it.
type options map[string]any

// textOr returns an option as text, or other if it is not set.
func (o options) textOr(key, other string) string {
	switch v := o[key].(type) {
	case string:
		if v != "" {
			return v
		}
	case int64, int, float64:
		return fmt.Sprint(v)
	}
	return other
}

// optional returns an option as text, or "" if it is not set.
func (o options) optional(key string) string { return o.textOr(key, "") }

// text returns an option as text. Like number, integer, span and truth it falls back to the default in the
// table of options.
func (o options) text(key string) string {
	if s := o.optional(key); s != "" {
		return s
	}
	s, _ := conf.Default("minion", key).(string)
	return s
}

func (o options) number(key string) float64 {
	if f, ok := asNumber(o[key]); ok {
		return f
	}
	f, _ := asNumber(conf.Default("minion", key))
	return f
}

func asNumber(v any) (float64, bool) {
	switch v := v.(type) {
	case int64:
		return float64(v), true
	case int:
		return float64(v), true
	case float64:
		return v, !math.IsNaN(v)
	case string:
		f, err := strconv.ParseFloat(strings.TrimSpace(v), 64)
		return f, err == nil && !math.IsNaN(f)
	}
	return 0, false
}

// changed reports whether a numeric option differs from its default.
func (o options) changed(key string) bool {
	standard, _ := asNumber(conf.Default("minion", key))
	return o.number(key) != standard
}

func (o options) integer(key string) int { return int(o.number(key)) }

// span returns an option as a duration in units. Negative and absurdly large values are clamped.
func (o options) span(key string, unit time.Duration) time.Duration {
	f := max(0, o.number(key)) * float64(unit)
	return time.Duration(min(f, float64(10*365*24*time.Hour)))
}

// truthOr returns an option as a boolean, or other if it is not set.
func (o options) truthOr(key string, other bool) bool {
	if v, ok := o[key]; ok && v != nil {
		return conf.Truth(v)
	}
	return other
}

func (o options) truth(key string) bool {
	if v, ok := o[key]; ok && v != nil {
		return conf.Truth(v)
	}
	return conf.Truth(conf.Default("minion", key))
}

func (o options) texts(key string) []string {
	switch v := o[key].(type) {
	case string:
		if v != "" {
			return []string{v}
		}
	case []any:
		var list []string
		for _, x := range v {
			if s := (options{"": x}).optional(""); s != "" {
				list = append(list, s)
			}
		}
		return list
	case []string:
		return v
	}
	return nil
}

func (o options) dict(key string) map[string]any {
	m, _ := o[key].(map[string]any)
	return m
}

// master is a configured master's address.
type master struct {
	name    string // as written
	host    string
	port    int // request port
	publish int // publish port; 0 means the one that the master reports
}

func (a master) requestAddr() string { return transport.JoinHostPort(a.host, a.port) }

// The ways to use several masters (option master_type).
const (
	typeStr         = "str"
	typeFailover    = "failover"
	typeDistributed = "distributed"
	typeDisable     = "disable"
)

// settings are the typed options that the minion itself uses. A reload replaces them as a whole.
type settings struct {
	options
	// order is the order of keys in the values of options, by option; nil if unknown.
	order                *pyobj.Dict
	policy               *policy.Policy
	id, pkiDir, cacheDir string
	masterType           string
	masters              []master
	transport            string
	encAlgo, sigAlgo     string

	acceptWait, acceptWaitMax time.Duration
	authTimeout               time.Duration
	authTries                 int
	requestTimeout            time.Duration
	requestTries              int
	returnMin, returnMax      time.Duration
	returnTries               int

	// returnAge is the minimum time between a job's arrival and its return to a stock master (option
	// min_return_age). Masters that announce prompt returns do not need it.
	//
	// The stock client of 3007 and later polls its socket, but not the buffer that its event loop may have
	// filled already (salt/transport/tcp.py: PublishClient.recv). A return that arrives while the client still
	// handles the event of its own job stays in that buffer until another event comes, at the latest the
	// client's find_job seconds later. Measured with a 3007.15 master under load, 600 jobs of a long-lived
	// LocalClient each: after a pause of 0 to 2 ms it overlooked 11 to 15 of 100 returns, after 4 ms 3.7, 6 ms
	// 2.7, 8 ms 1.5, 10 to 15 ms 0.5 to 0.8, 18 to 25 ms 0 to 0.5. Some remain at any pause, because the burst
	// of the job's events takes longer on a busy master.
	returnAge time.Duration
}

func newSettings(opts map[string]any, seal *policy.Seal) (*settings, error) {
	opts = seal.Options(opts)
	o := options(opts)
	s := &settings{
		options:       o,
		id:            o.optional("id"),
		pkiDir:        o.text("pki_dir"),
		cacheDir:      o.text("cachedir"),
		masterType:    o.text("master_type"),
		transport:     o.text("transport"),
		encAlgo:       o.text("encryption_algorithm"),
		sigAlgo:       o.text("signing_algorithm"),
		acceptWait:    o.span("acceptance_wait_time", time.Second),
		acceptWaitMax: o.span("acceptance_wait_time_max", time.Second),
		authTimeout:   max(o.span("auth_timeout", time.Second), 100*time.Millisecond),
		authTries:     max(o.integer("auth_tries"), 1),

		requestTimeout: max(o.span("request_channel_timeout", time.Second),
			100*time.Millisecond),
		requestTries: max(o.integer("request_channel_tries"), 1),
		returnMin:    max(o.span("return_retry_timer", time.Second), 100*time.Millisecond),
		returnMax:    o.span("return_retry_timer_max", time.Second),
		returnTries:  max(o.integer("return_retry_tries"), 1),
		returnAge:    o.span("min_return_age", time.Millisecond),
	}
	if err := protocol.ValidID(s.id); err != nil {
		return nil, fmt.Errorf("cannot use minion id: %w", err)
	}
	if !crypt.ValidEncryption(s.encAlgo) {
		return nil, fmt.Errorf("cannot use encryption_algorithm %q: not supported", s.encAlgo)
	}
	if !crypt.ValidSigning(s.sigAlgo) {
		return nil, fmt.Errorf("cannot use signing_algorithm %q: not supported", s.sigAlgo)
	}
	if err := s.fips(); err != nil {
		return nil, err
	}
	for _, dir := range []string{s.pkiDir, s.cacheDir} {
		if !filepath.IsAbs(dir) {
			return nil, fmt.Errorf("cannot use directory %q: not an absolute path", dir)
		}
	}
	var err error
	if s.policy, err = policy.New(opts, seal); err != nil {
		return nil, err
	}
	return s, s.findMasters()
}

// fips applies option fips_mode, which forbids SHA-1 and MD5. The algorithms become those with SHA-224; a
// hash_type of md5 or sha1 is an error.
func (s *settings) fips() error {
	if !s.truth("fips_mode") {
		return nil
	}
	s.encAlgo, s.sigAlgo = crypt.OAEPSHA224, crypt.PKCS1v15SHA224
	if h := s.text("hash_type"); h == "md5" || h == "sha1" {
		return fmt.Errorf("cannot use hash_type %s in fips_mode", h)
	}
	return nil
}

// findMasters reads master and master_type (salt/minion.py: eval_master).
func (s *settings) findMasters() error {
	switch s.masterType {
	case typeStr, typeFailover, typeDistributed:
	case typeDisable:
		return nil
	case "func":
		return errors.New("cannot use master_type func: the master must be named in the " +
			"configuration")
	default:
		return fmt.Errorf("Invalid keyword '%s' for variable 'master_type'", s.masterType)
	}
	names := s.texts("master")
	if m, set := s.options["master"]; len(names) == 0 && (!set || m == nil) {
		names = []string{"salt"}
	}
	if len(names) == 0 {
		return errors.New("Master address: 'unknown address' could not be resolved. Invalid or " +
			"unresolveable address. " +
			"Set 'master' value in minion config.")
	}
	for _, name := range names {
		a, err := s.parseMaster(name)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(s.masters,
			func(b master) bool { return b.host == a.host && b.port == a.port }) {
			s.masters = append(s.masters, a)
		}
	}
	if name, ok := s.options["master"].(string); ok && len(s.masters) == 1 &&
		s.masterType == typeStr && s.text("file_client") != "local" && s.masters[0].host != name &&
		s.text("master_uri_format") != "ip_only" {
		// Functions see host and port apart, as in stock (prep_ip_port).
		s.options = maps.Clone(s.options)
		s.options["master"], s.options["master_port"] = s.masters[0].host, int64(s.masters[0].port)
	}
	if s.masterType == typeDistributed {
		// The hash of the minion's id selects the first master, which spreads minions evenly. The others are
		// fallbacks.
		first := int(crc32.ChecksumIEEE([]byte(s.id)) % uint32(len(s.masters)))
		chosen := s.masters[first]
		s.masters = slices.Insert(slices.Delete(s.masters, first, first+1), 0, chosen)
	}
	return nil
}

// failover reports whether one master is used at a time.
func (s *settings) failover() bool {
	return s.masterType == typeFailover || s.masterType == typeDistributed
}

// parseMaster parses "host", "host:port", "[v6]", "[v6]:port" and a bare IPv6 address (salt/minion.py:
// prep_ip_port).
func (s *settings) parseMaster(name string) (master, error) {
	a := master{name: name, host: strings.TrimSpace(name), port: s.integer("master_port")}
	if s.changed("publish_port") {
		a.publish = s.integer("publish_port")
	}
	bad := func(why string) (master, error) {
		return a, fmt.Errorf("cannot use master %q: %s", name, why)
	}
	if s.text("master_uri_format") == "ip_only" {
		if _, err := netip.ParseAddr(a.host); err != nil {
			return bad("master_uri_format is ip_only and it is not an IP address")
		}
		return a, s.checkPorts(a)
	}
	port := ""
	switch {
	case strings.HasPrefix(a.host, "["):
		if strings.HasSuffix(a.host, "]") {
			a.host = a.host[1 : len(a.host)-1]
			break
		}
		host, p, err := net.SplitHostPort(a.host)
		if err != nil {
			return bad(err.Error())
		}
		a.host, port = host, p
	case strings.Count(a.host, ":") == 1:
		a.host, port, _ = strings.Cut(a.host, ":")
	}
	if strings.Contains(a.host, ":") {
		if _, err := netip.ParseAddr(a.host); err != nil {
			return bad("it is neither a name nor an IP address")
		}
	}
	if a.host == "" || strings.ContainsAny(a.host, " \t\r\n/\\") {
		return bad("it has no usable host name")
	}
	if port != "" {
		n, err := strconv.Atoi(port)
		if err != nil {
			return bad("its port is not a number")
		}
		a.port = n
	}
	return a, s.checkPorts(a)
}

func (s *settings) checkPorts(a master) error {
	if a.port < 1 || a.port > 65535 || a.publish < 0 || a.publish > 65535 {
		return fmt.Errorf("cannot use master %q: ports %d and %d are not in 1..65535", a.name,
			a.port, a.publish)
	}
	return nil
}

// source returns the local address for a connection; "" means any.
func (s *settings) source(portOption string) string {
	ip, port := s.text("source_address"), s.integer(portOption)
	if name := s.text("source_interface_name"); name != "" {
		if found := interfaceAddr(name, s.truth("ipv6")); found != "" {
			ip = found
		}
	}
	if port <= 0 || port > 65535 {
		return ip
	}
	return net.JoinHostPort(ip, strconv.Itoa(port))
}

// interfaceAddr returns the first address of a network interface that is up, or "".
func interfaceAddr(name string, v6 bool) string {
	ifc, err := net.InterfaceByName(name)
	if err != nil || ifc.Flags&net.FlagUp == 0 {
		return ""
	}
	addrs, err := ifc.Addrs()
	if err != nil {
		return ""
	}
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && (n.IP.To4() == nil) == v6 {
			return n.IP.String()
		}
	}
	return ""
}

// client returns the transport's options for a master.
func (s *settings) client(a master) transport.ClientOptions {
	c := transport.ClientOptions{
		RequestAddr: a.requestAddr(), RequestSource: s.source("source_ret_port"),
		PublishSource: s.source("source_publish_port"),
		KeepAlive: transport.SaltKeepAlive(s.truth("tcp_keepalive"),
			s.integer("tcp_keepalive_idle"),
			s.integer("tcp_keepalive_cnt"), s.integer("tcp_keepalive_intvl")),
		ReconRandomize: s.truth("recon_randomize"),
		ID:             s.id, Filter: s.truth("zmq_filtering"),
	}
	if c.KeepAlive.Disabled {
		c.Probe = -1
	}
	if s.changed("recon_default") || s.changed("recon_max") {
		// Salt's own defaults select the transport's, which reconnect sooner.
		c.ReconDefault = s.span("recon_default", time.Millisecond)
		c.ReconMax = s.span("recon_max", time.Millisecond)
	}
	if b := s.span("tcp_reconnect_backoff", time.Second); s.transport == "tcp" &&
		s.changed("tcp_reconnect_backoff") && b > 0 {
		c.ReconDefault, c.ReconMax, c.ReconRandomize = b, b, false
	}
	return c
}

// signPolicy is which publishes must be signed (option sign_pub_messages).
type signPolicy int

const (
	signSeen   signPolicy = iota // verified if present; required once the master has signed
	signAlways                   // required
	signNever                    // ignored, at the operator's risk
)

func (s *settings) signPolicy() signPolicy {
	if t, ok := s.options["sign_pub_messages"].(string); ok &&
		strings.EqualFold(strings.TrimSpace(t), "never") {
		return signNever
	}
	if s.truth("sign_pub_messages") {
		return signAlways
	}
	return signSeen
}

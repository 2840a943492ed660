package minion

import (
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/conf"
	"github.com/brine-salt/brine/internal/pyobj"
	"github.com/brine-salt/brine/minion/policy"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/crypt"
	"github.com/brine-salt/brine/protocol/transport"
)

// options reads single values of the configuration. A value of a wrong type counts as not set: Salt only warns about
// it.
type options map[string]any

func (o options) text(key, def string) string {
	switch v := o[key].(type) {
	case string:
		if v != "" {
			return v
		}
	case int64, int, float64:
		return fmt.Sprint(v)
	}
	return def
}

func (o options) number(key string, def float64) float64 {
	switch v := o[key].(type) {
	case int64:
		return float64(v)
	case int:
		return float64(v)
	case float64:
		if !math.IsNaN(v) {
			return v
		}
	case string:
		if f, err := strconv.ParseFloat(strings.TrimSpace(v), 64); err == nil && !math.IsNaN(f) {
			return f
		}
	}
	return def
}

func (o options) integer(key string, def int) int { return int(o.number(key, float64(def))) }

// span is a time in units; negative and absurd ones are cut.
func (o options) span(key string, def float64, unit time.Duration) time.Duration {
	f := max(0, o.number(key, def)) * float64(unit)
	return time.Duration(min(f, float64(10*365*24*time.Hour)))
}

func (o options) truth(key string, def bool) bool {
	if v, ok := o[key]; ok && v != nil {
		return conf.Truth(v)
	}
	return def
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
			if s := (options{"": x}).text("", ""); s != "" {
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

// master is one master's address as the configuration has it.
type master struct {
	name    string // as written
	host    string
	port    int // of requests
	publish int // 0 = what the master says
}

func (a master) requestAddr() string { return transport.JoinHostPort(a.host, a.port) }

// The ways to use several masters (option master_type).
const (
	typeStr         = "str"
	typeFailover    = "failover"
	typeDistributed = "distributed"
	typeDisable     = "disable"
)

// settings are the options that the minion itself needs, typed. They are replaced as a whole by a reload.
type settings struct {
	options
	// of the keys in the values of options, by option; nil where none is known
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
	returnAge                 time.Duration
}

func newSettings(opts map[string]any) (*settings, error) {
	o := options(opts)
	s := &settings{
		options:       o,
		id:            o.text("id", ""),
		pkiDir:        o.text("pki_dir", "/etc/salt/pki/minion"),
		cacheDir:      o.text("cachedir", "/var/cache/salt/minion"),
		masterType:    o.text("master_type", typeStr),
		transport:     o.text("transport", "zeromq"),
		encAlgo:       o.text("encryption_algorithm", crypt.OAEPSHA1),
		sigAlgo:       o.text("signing_algorithm", crypt.PKCS1v15SHA1),
		acceptWait:    o.span("acceptance_wait_time", 10, time.Second),
		acceptWaitMax: o.span("acceptance_wait_time_max", 0, time.Second),
		authTimeout:   max(o.span("auth_timeout", 5, time.Second), 100*time.Millisecond),
		authTries:     max(o.integer("auth_tries", 7), 1),

		requestTimeout: max(o.span("request_channel_timeout", 60, time.Second),
			100*time.Millisecond),
		requestTries: max(o.integer("request_channel_tries", 3), 1),
		returnMin:    max(o.span("return_retry_timer", 5, time.Second), 100*time.Millisecond),
		returnMax:    o.span("return_retry_timer_max", 10, time.Second),
		returnTries:  max(o.integer("return_retry_tries", 3), 1),
		returnAge: o.span("min_return_age", float64(minReturnAge/time.Millisecond),
			time.Millisecond),
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
	if s.policy, err = policy.New(opts); err != nil {
		return nil, err
	}
	return s, s.findMasters()
}

// fips is option fips_mode: SHA-1 and MD5 are not used. Salt's own defaults give way to the names with SHA224; what was
// chosen otherwise is refused.
func (s *settings) fips() error {
	if !s.truth("fips_mode", false) {
		return nil
	}
	s.encAlgo, s.sigAlgo = crypt.OAEPSHA224, crypt.PKCS1v15SHA224
	if h := s.text("hash_type", "sha256"); h == "md5" || h == "sha1" {
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
	if s.masterType == typeDistributed {
		// The first choice is spread over the masters by the minion's id, the others stand by.
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

// parseMaster reads "host", "host:port", "[v6]", "[v6]:port" and a bare IPv6 address (salt/minion.py: prep_ip_port).
func (s *settings) parseMaster(name string) (master, error) {
	a := master{name: name, host: strings.TrimSpace(name), port: s.integer("master_port", 4506)}
	if p := s.integer("publish_port", 4506); p != 4506 {
		a.publish = p
	}
	bad := func(why string) (master, error) {
		return a, fmt.Errorf("cannot use master %q: %s", name, why)
	}
	if s.text("master_uri_format", "default") == "ip_only" {
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

// source is the local end for a connection, "" for any.
func (s *settings) source(portOption string) string {
	ip, port := s.text("source_address", ""), s.integer(portOption, 0)
	if name := s.text("source_interface_name", ""); name != "" {
		if found := interfaceAddr(name, s.truth("ipv6", false)); found != "" {
			ip = found
		}
	}
	if port <= 0 || port > 65535 {
		return ip
	}
	return net.JoinHostPort(ip, strconv.Itoa(port))
}

// interfaceAddr is the first address of a network interface that is up.
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

// client are the transport's options for a master.
func (s *settings) client(a master) transport.ClientOptions {
	c := transport.ClientOptions{
		RequestAddr: a.requestAddr(), RequestSource: s.source("source_ret_port"),
		PublishSource: s.source("source_publish_port"),
		KeepAlive: transport.SaltKeepAlive(s.truth("tcp_keepalive", true),
			s.integer("tcp_keepalive_idle", 300),
			s.integer("tcp_keepalive_cnt", -1), s.integer("tcp_keepalive_intvl", -1)),
		ReconRandomize: s.truth("recon_randomize", true),
		ID:             s.id, Filter: s.truth("zmq_filtering", false),
	}
	if c.KeepAlive.Disabled {
		c.Probe = -1
	}
	first, last := s.span("recon_default", 1000, time.Millisecond),
		s.span("recon_max", 10000, time.Millisecond)
	if first != time.Second || last != 10*time.Second {
		// Salt's own defaults mean the transport's, which come back sooner.
		c.ReconDefault, c.ReconMax = first, last
	}
	if b := s.span("tcp_reconnect_backoff", 1, time.Second); s.transport == "tcp" &&
		b != time.Second && b > 0 {
		c.ReconDefault, c.ReconMax, c.ReconRandomize = b, b, false
	}
	return c
}

// signPolicy is how publishes must be signed (option sign_pub_messages).
type signPolicy int

const (
	signSeen   signPolicy = iota // verified when present; required once a master was seen to sign
	signAlways                   // required
	signNever                    // ignored: the operator's own risk
)

func (s *settings) signPolicy() signPolicy {
	if t, ok := s.options["sign_pub_messages"].(string); ok &&
		strings.EqualFold(strings.TrimSpace(t), "never") {
		return signNever
	}
	if s.truth("sign_pub_messages", false) {
		return signAlways
	}
	return signSeen
}

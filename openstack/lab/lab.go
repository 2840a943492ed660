//go:build linux

package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Options configure a lab. The zero value is a lab with one heat-engine.
type Options struct {
	// Dir is the directory of the lab. It is created if needed, must be empty, and remains after Close. If Dir is
	// empty, the lab creates a temporary directory and Close removes it.
	Dir string
	// Plugins are directories with Heat plugins (plugin_dirs).
	Plugins []string
	// Environments are files for the engine's environment.d by name. They apply to every stack.
	Environments map[string]string
	// Heat contains additional settings of heat.conf by section and name. They override the lab's own.
	Heat map[string]map[string]string
	// Engines is the number of heat-engines to start, by default 1. If it is negative, none is started.
	Engines int
	// EngineEnv is added to the environment of every engine, for example PYTHONPATH=….
	EngineEnv []string
	// EngineEnvOf returns the environment variables to add for engine n only.
	EngineEnvOf func(n int) []string
	// EngineHeat returns additional settings of heat.conf for engine n only.
	EngineHeat func(n int) map[string]map[string]string
	// Endpoints adds services to keystone's catalog: URLs by service type. A URL may contain %(tenant_id)s.
	Endpoints map[string]string
	// Brine loads brine's Heat plugin: it is the path of brine-master, which the engines start. Python is the
	// directory that contains the package brine_openstack.
	Brine, Python string
	// HeatPython is the Python of a virtual environment with another openstack-heat than Debian's, from which engines
	// and APIs are started. The database gets the schema of that Heat.
	HeatPython string
	// Swift and Zaqar also start these services. Zaqar stores its messages in swift, so it also starts swift.
	Swift, Zaqar bool
	// Timeout is the time limit of Start, by default five minutes.
	Timeout time.Duration
	// Logf receives the lab's messages, in the form of log.Printf. By default nothing is printed.
	Logf func(format string, args ...any)
}

// The lab's passwords protect nothing, because every service listens on loopback and ends with the test.
const (
	adminPassword  = "adminpw"
	demoPassword   = "demopw"
	heatPassword   = "heatpw"
	domainPassword = "hdapw"
	sqlUser        = "os"
	sqlPassword    = "ospw"
)

var servicePasswords = map[string]string{"heat": heatPassword, "swift": "swiftpw", "zaqar": "zaqarpw", "nova": "novapw"}

// ports holds the ports on which the services of a lab listen on 127.0.0.1; 0 for a service that is not used.
type ports struct {
	sql, amqp, amqpDist, epmd, keystone, ec2, heat, cfn int
	swift, account, container, object, zaqar, zaqarWS   int
	publish, ret                                        int // of the Salt masters, which have an address each
}

// A Lab is a running set of services. Its methods may be called concurrently, except Close.
type Lab struct {
	// Dir contains the configuration, data and logs of all services.
	Dir string
	// Heat is a client of heat-api for the user admin in the project admin.
	Heat *Client
	// Demo is a client for the user demo in the project demo, who is not an administrator.
	Demo *Client

	opts    Options
	ports   ports
	block   *portBlock
	starter *starter
	temp    bool
	ec2     *http.Server
	ec2Done chan struct{}

	mu       sync.Mutex
	services []*Process       // in the order of their start, without the engines
	engines  map[int]*Process // by number
}

// Start starts a lab and returns when every service answers. An error contains the end of the logs of the services
// that failed. Close ends everything that was started; if the calling process ends, the kernel does so.
func Start(ctx context.Context, opts Options) (_ *Lab, err error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("cannot start a lab: it needs root")
	}
	l, err := prepare(opts)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.Close())
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, l.opts.Timeout)
	defer cancel()
	tmpl, err := template(ctx, l.opts.Logf)
	if err != nil {
		return nil, err
	}
	if err := tmpl.copyTo(ctx, l); err != nil {
		return nil, err
	}
	if err := l.writeConfiguration(); err != nil {
		return nil, err
	}
	if err := l.startSQL(ctx); err != nil {
		return nil, err
	}
	if err := l.writeCatalog(ctx); err != nil {
		return nil, err
	}
	if err := l.startAll(ctx); err != nil {
		return nil, err
	}
	return l, nil
}

// Empty returns a lab without services, only for guests and machines. It needs root, and ends like a lab from Start.
func Empty(opts Options) (*Lab, error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("cannot make a lab: it needs root")
	}
	return prepare(opts)
}

// prepare creates the directory and takes the ports; it starts nothing.
func prepare(opts Options) (*Lab, error) {
	if opts.Engines == 0 {
		opts.Engines = 1
	}
	if opts.Timeout == 0 {
		opts.Timeout = 5 * time.Minute
	}
	opts.Swift = opts.Swift || opts.Zaqar
	if opts.Logf == nil {
		opts.Logf = func(string, ...any) {}
	}
	l := &Lab{opts: opts, Dir: opts.Dir, engines: map[int]*Process{}}
	if l.Dir == "" {
		dir, err := os.MkdirTemp("", "brine-lab-")
		if err != nil {
			return nil, err
		}
		l.Dir, l.temp = dir, true
	}
	abs, err := filepath.Abs(l.Dir)
	if err != nil {
		return nil, err
	}
	l.Dir = abs
	if err := os.MkdirAll(filepath.Join(l.Dir, "log"), 0o700); err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(l.Dir, "my")); err == nil {
		return nil, fmt.Errorf("cannot start a lab in %s: there is one already", l.Dir)
	}
	b, err := reservePorts()
	if err != nil {
		return nil, err
	}
	l.block = b
	p := &l.ports
	for _, port := range []*int{&p.sql, &p.amqp, &p.amqpDist, &p.epmd, &p.keystone, &p.ec2, &p.heat, &p.cfn} {
		*port = b.take()
	}
	if opts.Swift {
		p.swift, p.account, p.container, p.object = b.take(), b.take(), b.take(), b.take()
	}
	if opts.Zaqar {
		p.zaqar, p.zaqarWS = b.take(), b.take()
	}
	if opts.Brine != "" {
		p.publish, p.ret = b.take(), b.take()
	}
	l.starter = newStarter()
	client := func(user, password, project string) *Client {
		k := &keystone{base: l.url(p.keystone), user: user, domain: "default", password: password, project: project}
		return &Client{k: k, base: l.url(p.heat)}
	}
	l.Heat = client("admin", adminPassword, "admin")
	l.Demo = client("demo", demoPassword, "demo")
	return l, nil
}

// startAll starts everything except MariaDB concurrently, because each service spends most of its start importing
// modules.
func (l *Lab) startAll(ctx context.Context) error {
	if err := l.startEC2Proxy(); err != nil {
		return err
	}
	steps := []func(context.Context) error{l.startRabbit, l.startKeystone, l.startAPIs}
	if l.opts.Swift {
		steps = append(steps, l.startSwift)
	}
	if l.opts.Zaqar {
		steps = append(steps, l.startZaqar)
	}
	errs := make([]error, len(steps))
	var wg sync.WaitGroup
	for i, f := range steps {
		wg.Go(func() { errs[i] = f(ctx) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if l.opts.HeatPython != "" {
		if _, err := l.run(ctx, l.opts.HeatPython, l.heatProgram("heat-manage"), "--config-file", l.path("heat", "heat.conf"), "db_sync"); err != nil {
			return err
		}
	}
	errs = make([]error, max(l.opts.Engines, 0))
	for n := range errs {
		wg.Go(func() { errs[n] = l.StartEngine(ctx, n) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// service starts a process that runs until Close.
func (l *Lab) service(s spec) (*Process, error) {
	p, err := l.spawn(s)
	if err == nil {
		l.mu.Lock()
		l.services = append(l.services, p)
		l.mu.Unlock()
	}
	return p, err
}

// end ends the service with the name of this log, if it runs.
func (l *Lab) end(name string) {
	p := l.Service(name)
	p.kill()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.services = slices.DeleteFunc(l.services, func(x *Process) bool { return x == p })
}

// Service returns the process of the service with the name of this log, or nil if it is missing.
func (l *Lab) Service(name string) *Process {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.services {
		if p.Name == name {
			return p
		}
	}
	return nil
}

// Close ends all services and their processes, and removes the directory if the lab created it. It returns an error
// if processes outlived their parents: a plugin must not leave processes behind.
func (l *Lab) Close() error {
	l.mu.Lock()
	all := l.services
	for _, p := range l.engines {
		all = append(all, p)
	}
	l.services, l.engines = nil, map[int]*Process{}
	l.mu.Unlock()
	for i := len(all) - 1; i >= 0; i-- {
		all[i].kill()
	}
	l.stopEC2Proxy()
	err := l.reap()
	l.starter.stop()
	l.block.release()
	if l.temp {
		err = errors.Join(err, os.RemoveAll(l.Dir))
	}
	return err
}

// reap waits for the rest of the lab's processes and kills those that remain.
func (l *Lab) reap() error {
	deadline := time.Now().Add(5 * time.Second)
	for {
		pids := Marked(l.Dir)
		if len(pids) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			var names []string
			for _, pid := range pids {
				b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
				names = append(names, fmt.Sprintf("%d %s", pid, strings.ReplaceAll(string(b), "\x00", " ")))
				syscall.Kill(pid, syscall.SIGKILL)
			}
			return fmt.Errorf("processes outlived the lab: %s", strings.Join(names, "; "))
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func (l *Lab) hostPort(port int) string { return net.JoinHostPort("127.0.0.1", fmt.Sprint(port)) }

func (l *Lab) url(port int) string { return "http://" + l.hostPort(port) }

func (l *Lab) path(parts ...string) string {
	return filepath.Join(append([]string{l.Dir}, parts...)...)
}

// AuthURL returns the URL of keystone, with /v3.
func (l *Lab) AuthURL() string { return l.url(l.ports.keystone) + "/v3" }

// CFNURL returns the URL of heat-api-cfn, with /v1/.
func (l *Lab) CFNURL() string { return l.url(l.ports.cfn) + "/v1/" }

// HeatURL returns the URL of heat-api without the project's part.
func (l *Lab) HeatURL() string { return l.url(l.ports.heat) }

// Env returns the OS_ variables for the user admin, as the OpenStack command line reads them.
func (l *Lab) Env() []string {
	return []string{
		"OS_AUTH_URL=" + l.AuthURL(), "OS_IDENTITY_API_VERSION=3", "OS_USERNAME=admin", "OS_PASSWORD=" + adminPassword,
		"OS_PROJECT_NAME=admin", "OS_USER_DOMAIN_NAME=Default", "OS_PROJECT_DOMAIN_NAME=Default", "OS_REGION_NAME=RegionOne",
	}
}

// Logs returns the last n bytes of every log, for the output of a failed test.
func (l *Lab) Logs(n int) string { return l.LogsOf("*", n) }

// LogsOf is like Logs, for services that match a glob pattern.
func (l *Lab) LogsOf(pattern string, n int) string {
	names, _ := filepath.Glob(l.path("log", pattern+".log"))
	sort.Strings(names)
	var b strings.Builder
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			text = []byte(err.Error())
		}
		fmt.Fprintf(&b, "==> %s <==\n%s\n", name, tail(text, n))
	}
	return b.String()
}

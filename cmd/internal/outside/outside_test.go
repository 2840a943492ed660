package outside

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/brine-salt/brine/protocol/transport/transporttest/certs"
)

// misleading texts must never be printed if the cause is outside of the command.
var misleading = []string{"No minions matched", "panic:", "goroutine ", "Executed command with job ID: 0", "runtime error", "<nil>", "%!"}

// cause is a failure, and how to create it in a site.
type cause struct {
	name string
	make func(s *site)
}

// row is the run of a program with a cause.
type row struct {
	cause
	program string
	args    []string
	code    int
	texts   []string // expected in its output or log
	stays   bool     // a daemon that keeps running: the texts are in its log, and SIGTERM ends it with exit code 0
	match   bool     // here it is true that no minion matches
	stock   int      // the exit code of stock 3006 for this cause, if it differs; docs/migrate.md has the reasons
}

// unlike sets stock's exit code.
func (r row) unlike(stock int) row {
	r.stock = stock
	return r
}

func TestOutsideCauses(t *testing.T) {
	bin = filepath.Join(t.TempDir(), "bin") // the user "nobody" must be able to read it
	if err := errors.Join(os.Chmod(filepath.Dir(filepath.Dir(bin)), 0o755), os.Mkdir(bin, 0o755)); err != nil {
		t.Fatal(err)
	}
	build(t, bin)
	seen := map[string]bool{}
	for _, r := range rows() {
		name := r.name + "/" + r.program + " " + strings.Join(r.args, " ")
		if seen[name] {
			t.Fatalf("two rows %q", name)
		}
		seen[name] = true
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			r.make(s)
			if stock := os.Getenv("OUTSIDE_STOCK"); stock != "" {
				if r.stays || strings.Contains(r.name, "directory") {
					t.Skip()
				}
				s.bin = stock
			}
			code, out := 0, ""
			switch {
			case r.stays:
				code, out = s.stay(r)
			case r.program == "http":
				code, out = s.post(r.args[0], r.args[1])
			default:
				code, out = s.run(r.program, r.args...)
			}
			if os.Getenv("OUTSIDE_PRINT") != "" {
				t.Logf("code %d\n%s", code, out)
				return
			}
			if code != r.code {
				t.Errorf("exit code %d, want %d", code, r.code)
			}
			for _, text := range r.texts {
				if !strings.Contains(out, text) {
					t.Errorf("it does not say %q", text)
				}
			}
			for _, text := range misleading {
				if strings.Contains(out, text) && !(r.match && text == misleading[0]) {
					t.Errorf("it says %q", text)
				}
			}
			if t.Failed() {
				t.Logf("it printed:\n%s", out)
			}
		})
	}
	if len(seen) < 60 {
		t.Errorf("%d rows, want 60 at least", len(seen))
	}
}

// stay runs a daemon until it has logged the row's texts.
func (s *site) stay(r row) (int, string) {
	s.t.Helper()
	out := &output{}
	cmd := s.command(s.t.Context(), r.program, append(r.args, "-l", "info")...)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	for _, text := range r.texts {
		s.await(out, text)
	}
	_ = cmd.Process.Signal(syscall.SIGTERM)
	_ = cmd.Wait()
	return cmd.ProcessState.ExitCode(), out.String()
}

// withServers adds rows that need servers, in make interop.
var withServers func(add func(name string, make func(s *site), rows ...row), run func(line string, code int, texts string) row,
	web func(func(s *site)) func(s *site))

func rows() (all []row) {
	add := func(name string, make func(s *site), rows ...row) {
		for _, r := range rows {
			r.cause = cause{name, make}
			all = append(all, r)
		}
	}
	// run returns a row for a command line, its exit code, and texts separated by bars.
	run := func(line string, code int, texts string) row {
		words := strings.Fields(line)
		return row{program: words[0], args: words[1:], code: code, texts: strings.Split(texts, "|")}
	}
	stays := func(program, texts string) row {
		r := run(program, 0, texts)
		r.stays = true
		return r
	}

	const away = "The salt master could not be contacted. Is master running?"
	add("no master runs", func(s *site) { s.write("cache/master/.root_key", "x") },
		run("salt m test.ping", 0, away),
		run("salt --static m test.ping", 1, away),
		run("salt --async m test.ping", 1, away),
		run("salt -b 1 m test.ping", 1, away),
		run("salt -a file --username u --password p m test.ping", 0, away),
		run("salt-run manage.up", 1, "the master is not running"),
		run("salt-run state.event count=1", 1, "the master is not running"),
		run("salt-key -L", 0, "Accepted Keys:"),
		run("salt-call test.ping", 1, "Is master at 127.0.0.1 responding?|connection refused"),
		stays("salt-minion", "Is master at 127.0.0.1 responding?|connection refused"),
		run("salt-call --local test.ping", 0, "True"))
	const bad = "Error parsing configuration file: "
	add("configuration is no YAML", func(s *site) {
		s.write("conf/master", "a: [1\nb: }")
		s.write("conf/minion", "a: [1\nb: }")
	},
		run("salt m test.ping", 1, bad+"|conf/master|line 2"), run("salt-key -L", 1, bad+"|conf/master"), run("salt-run manage.up", 1, bad+"|conf/master"),
		run("salt-call test.ping", 1, bad+"|conf/minion"), run("salt-master", 1, bad+"|conf/master"), run("salt-minion", 1, bad+"|conf/minion"))
	add("configuration is a directory", func(s *site) {
		for _, f := range []string{"conf/master", "conf/minion"} {
			if err := errors.Join(os.Remove(s.path(f)), os.Mkdir(s.path(f), 0o700)); err != nil {
				s.t.Fatal(err)
			}
		}
	},
		run("salt m test.ping", 1, bad+"|it is a directory"), run("salt-master", 1, bad+"|it is a directory"), run("salt-minion", 1, bad+"|it is a directory"))
	const user = "Failed to prepare the Salt environment for user nosuchuser. The user is not available."
	add("user is unknown", func(s *site) { s.option("master", "user: nosuchuser"); s.option("minion", "user: nosuchuser") },
		run("salt-master", 67, user), run("salt-minion", 67, user), run("salt-call test.ping", 67, user))
	add("pki_dir is a file", func(s *site) { s.file("pki/master"); s.file("pki/minion") },
		run("salt-key -L", 1, "pki/master|not a directory").unlike(0), run("salt-run manage.up", 1, "pki/master|not a directory"), run("salt-call test.ping", 17, "pki/minion|it is a file"),
		run("salt-master", 17, "pki/master|it is a file"), run("salt-minion", 17, "pki/minion|it is a file"))
	add("cachedir is a file", func(s *site) { s.file("cache/master"); s.file("cache/minion") },
		run("salt m test.ping", 0, away), run("salt-run jobs.list_jobs", 1, "cache/master|not a directory"), run("salt-call --local test.ping", 0, "it is a file|True").unlike(17),
		run("salt-master", 17, "cache/master|it is a file"), run("salt-minion", 17, "cache/minion|it is a file"))
	const serves, tries = "Master is ready", "Is master at 127.0.0.1 responding?"
	const noLog = "Failed to open the log file, logging to the console alone|not a directory"
	add("log file cannot be written", func(s *site) { s.file("log") },
		stays("salt-master", noLog+"|"+serves), stays("salt-minion", noLog+"|"+tries), run("salt-call --local test.ping", 0, noLog+"|True").unlike(1))
	add("pid file cannot be written", func(s *site) {
		s.write("file", "")
		s.option("master", "pidfile: "+s.path("run/full/pid"))
		s.option("minion", "pidfile: "+s.path("run/full/pid"))
		s.fill("run/full")
	},
		stays("salt-master", "cannot write pid file|no space left on device|"+serves), stays("salt-minion", "cannot write pid file|no space left on device|"+tries))
	add("ports are taken", func(s *site) {
		s.serve()
		s.option("master", "cachedir: "+s.path("cache/other"))
		s.option("master", "sock_dir: "+s.path("log"))
	},
		run("salt-master", 4, "The ports are not available to bind|address already in use"))
	add("another master runs", func(s *site) { s.serve() },
		run("salt-master", 4, "already running as pid"))
	add("key file of the user is missing", func(s *site) {
		s.serve()
		if err := os.Remove(s.path("cache/master/.root_key")); err != nil {
			s.t.Fatal(err)
		}
	},
		run("salt m test.ping", 0, "Authentication error occurred.|.root_key: no such file|publisher_acl"), run("salt --static m test.ping", 1, "Authentication error occurred.|.root_key: no such file"),
		run("salt-run manage.up", 1, "Authentication error occurred."))
	add("key file of the user is of another master", func(s *site) { s.serve(); s.write("cache/master/.root_key", strings.Repeat("x", 88)) },
		run("salt m test.ping", 0, "Authentication error occurred.|is not the key file of the master that runs"), run("salt --async m test.ping", 1, "Authentication error occurred.|is not the key file"),
		run("salt-run manage.up", 1, "Authentication error occurred."))
	const login = "Authentication error occurred.|the master refused the log-in|external_auth"
	add("log-in is refused", func(s *site) {
		s.option("master", "external_auth: {file: {^filename: "+s.path("users")+", ann: ['test.ping']}}")
		s.write("users", "ann:right\nbob:right\n")
		s.serve()
	},
		run("salt -a file --username ann --password wrong m test.ping", 0, login), run("salt -a nosuch --username ann --password right m test.ping", 0, login).unlike(2),
		run("salt -a file --username ann --password wrong -T m test.ping", 0, login),
		run("salt -a file --username ann --password right m cmd.run", 0, "Authorization error occurred."), run("salt -a file --username bob --password right m test.ping", 0, "Authorization error occurred."),
		run("salt-key --eauth file --username ann --password wrong -L", 1, `Authentication failure of type "eauth" occurred for user ann.|external_auth`).unlike(0),
		run("salt-run -a file --username ann --password wrong jobs.active", 1, `Authentication failure of type "eauth" occurred for user ann.|external_auth`).unlike(0),
		run("salt-run -a file --username ann --password wrong -T jobs.active", 1, login).unlike(0),
		run("salt-run -a file --username ann --password right jobs.active", 1, `Authentication failure of type "eauth" occurred for user ann.|external_auth`).unlike(0))
	add("function is forbidden", func(s *site) { s.option("master", "publisher_acl_blacklist: {modules: [cmd.run]}"); s.serve() },
		run("salt m cmd.run id", 0, "Authorization error occurred."))
	nobody := func(command string) row {
		r := run(command, 2, "No minions matched the target")
		r.match = true
		return r
	}
	add("the command means nobody", func(s *site) { s.serve() },
		nobody("salt nobody test.ping"), nobody("salt -E ( test.ping"), run("salt -N none test.ping", 0, "Node group none unavailable"),
		run("salt-key -y -a nobody", 0, "does not match any unaccepted keys"), run("salt-run no.such", 0, "'no.such' is not available."),
		run("salt-call no.such", 255, "'no.such' is not available."))
	add("minion is away", func(s *site) { s.serve() },
		run("salt m test.ping", 1, "Minion did not return."), run("salt -b 1 m test.ping", 2, "Minion m did not respond. No job will be sent."))
	const full = "the job could not be stored, and was not sent|disk is full|make room on the disk of the master"
	add("disk of the master is full", func(s *site) { s.small("cache/master"); s.serve(); s.top("cache/master") },
		run("salt m test.ping", 1, full).unlike(0), run("salt --async m test.ping", 1, full), run("salt --static m test.ping", 1, full), run("salt -b 1 m test.ping", 1, full),
		run("salt-run manage.up", 1, full), run("salt-run test.arg 1", 0, "no space left on device"), run("salt-call test.ping", 0, "True|could not be sent to the master"))
	add("disk of the keys is full", func(s *site) {
		s.write("pki/master/minions_pre/new", string(keyPair(2).Public().PEM()))
		s.fill("pki/master")
	},
		run("salt-key -y -a new", 1, "cannot accept key of \"new\"|no space left on device|1 of 1 keys could not be accepted").unlike(0), run("salt-key -y -d m", 0, "Key for minion m deleted."),
		run("salt-key --gen-keys=x --gen-keys-dir=pki/master", 1, "cannot write key|no space left on device").unlike(0))
	add("disk is full before the start", func(s *site) { s.fill("cache/master") },
		run("salt-master", 1, "jobs.sqlite|disk is full"))
	add("disk of the minion is full", func(s *site) { s.fill("cache/minion") },
		run("salt-call --local test.ping", 0, "no space left on device|True"))
	const database = "cannot open shared_database|connection refused|does the database server run"
	add("database cannot be reached", func(s *site) {
		s.option("master", "shared_database: postgres://u:p@127.0.0.1:1/x")
		s.option("master", "shared_key_file: "+s.path("sealing"))
		s.write("sealing", "0123456789abcdef0123456789abcdef")
	},
		run("salt-master", 1, database), run("salt-key -L", 1, database), run("salt-run manage.up", 1, database), run("salt-run jobs.list_jobs", 1, database))
	add("database is damaged", func(s *site) { s.write("cache/master/jobs.sqlite", strings.Repeat("damaged ", 2000)) },
		run("salt-master", 1, "jobs.sqlite|file is not a database|away"))
	add("key of the master is damaged", func(s *site) { s.write("pki/master/master.pem", "damaged") },
		run("salt-master", 1, "master.pem|is not PEM|restore it from a backup"))
	add("key of the minion is damaged", func(s *site) { s.serve(); s.write("pki/minion/minion.pem", "damaged") },
		run("salt-call test.ping", 1, "minion.pem|is not PEM"), run("salt-minion", 1, "minion.pem|is not PEM"))
	const other = "The master key has changed|remove the master public key|minion_master.pub"
	add("the minion knows another key of the master", func(s *site) { s.serve(); s.write("pki/minion/minion_master.pub", string(keyPair(3).Public().PEM())) },
		run("salt-call test.ping", 1, other), stays("salt-minion", other))
	add("master_finger is another", func(s *site) {
		s.serve()
		s.option("minion", "master_finger: '"+strings.TrimSuffix(strings.Repeat("ab:", 32), ":")+"'")
	},
		run("salt-call test.ping", 42, "The specified fingerprint in the master configuration file:|Does not match"), run("salt-minion", 42, "Does not match the authenticating master's key"))
	add("key waits for acceptance", func(s *site) {
		if err := os.Remove(s.path("pki/master/minions/m")); err != nil {
			s.t.Fatal(err)
		}
		s.serve()
	},
		run("salt-call test.ping", 2, "has not accepted this minion's public key yet"), stays("salt-minion", "The Salt Master has cached the public key for this node"))
	const rejected = "The Salt Master has rejected this minion's public key!|delete the public key for this minion on the Salt Master"
	add("key is rejected", func(s *site) {
		if err := errors.Join(os.Remove(s.path("pki/master/minions/m")), os.Mkdir(s.path("pki/master/minions_rejected"), 0o700)); err != nil {
			s.t.Fatal(err)
		}
		s.write("pki/master/minions_rejected/m", string(keyPair(1).Public().PEM()))
		s.serve()
	},
		run("salt-call test.ping", 77, rejected), run("salt-minion", 77, rejected))
	add("id belongs to another key", func(s *site) { s.write("pki/master/minions/m", string(keyPair(2).Public().PEM())); s.serve() },
		run("salt-call test.ping", 77, rejected), run("salt-minion", 77, rejected))
	add("name of the master is unknown", func(s *site) { s.option("minion", "master: master.invalid"); s.option("minion", "retry_dns: 1") },
		run("salt-call test.ping", 1, "DNS lookup or connection check of 'master.invalid' failed."), stays("salt-minion", "DNS lookup or connection check of 'master.invalid' failed."))
	add("configuration may not be read", func(s *site) { s.nobody(0o600, "conf/master", "conf/minion") },
		run("salt-master", 1, bad+"|conf/master|permission denied").unlike(0),
		run("salt-minion", 1, bad+"|conf/minion|permission denied").unlike(0),
		run("salt-key -L", 1, "conf/master may not be read: the defaults are used"))
	add("folder of the configuration may not be read", func(s *site) { s.nobody(0o700, "conf") },
		run("salt-master", 1, bad+"|conf/master|permission denied").unlike(0),
		run("salt-minion", 1, bad+"|conf/minion|permission denied").unlike(0))
	add("an included file is no YAML", func(s *site) {
		s.write("conf/more.conf", "publisher_acl_blacklist: [1\nb: }")
		s.option("master", "include: more.conf")
		s.option("minion", "include: more.conf")
	},
		run("salt-master", 1, bad+"|conf/more.conf|line 2").unlike(0), run("salt-minion", 1, bad+"|conf/more.conf|line 2"),
		run("salt-call --local test.ping", 0, bad+"|conf/more.conf|True"))
	// pids moves the pid files out of sock_dir.
	pids := func(s *site) {
		s.option("master", "pidfile: "+s.path("log/master.pid"))
		s.option("minion", "pidfile: "+s.path("log/minion.pid"))
	}
	const noEvents = "The minion has no event sockets|run"
	add("sock_dir may not be written", func(s *site) {
		pids(s)
		s.option("master", "user: nobody")
		s.option("minion", "user: nobody")
		s.nobody(0o555, "run")
	},
		run("salt-master", 13, "run|permission denied"), stays("salt-minion", noEvents+"|permission denied"))
	add("sock_dir is a file", func(s *site) { pids(s); s.file("run") },
		run("salt-master", 17, "run|it is a file"), stays("salt-minion", noEvents+"|it is a file").unlike(17))
	add("the user has no rights", func(s *site) { s.serve(); s.nobody(0o700, "pki", "cache") },
		run("salt m test.ping", 0, "Authentication error occurred.|.nobody_key: permission denied|publisher_acl"),
		run("salt-key -L", 1, "pki/master|permission denied"), run("salt-run manage.up", 1, "pki/master|permission denied"),
		run("salt-call test.ping", 67, `Salt configured to run as user "root" but unable to switch.`))
	const api = "rest_cherrypy: {host: 127.0.0.1, port: %d, "
	add("port of the HTTP interface is taken", func(s *site) {
		s.option("master", fmt.Sprintf(api+"disable_ssl: true}", s.http))
		s.listen(s.http, "")
	},
		run("salt-master", 4, "rest_cherrypy|address already in use|The ports are not available to bind"))
	add("certificate of the HTTP interface is missing", func(s *site) {
		s.option("master", fmt.Sprintf(api+"ssl_crt: %s, ssl_key: %[2]s}", s.http, s.path("no.crt")))
	},
		run("salt-master", 1, "rest_cherrypy|no.crt: no such file"))
	add("certificate is missing", func(s *site) {
		dir := certs.Make(s.t)
		s.tls(dir)
		if err := errors.Join(os.Remove(dir+"/server.pem"), os.Remove(dir+"/client.pem")); err != nil {
			s.t.Fatal(err)
		}
	},
		run("salt-master", 1, "ssl:certfile|server.pem: no such file"), run("salt m test.ping", 1, "ssl:certfile|server.pem: no such file"),
		run("salt-run manage.up", 1, "ssl:certfile|server.pem: no such file"), run("salt-call test.ping", 1, "ssl:certfile|client.pem: no such file"),
		run("salt-minion", 1, "ssl:certfile|client.pem: no such file"))
	add("certificate is of another authority", func(s *site) {
		s.tls(certs.Make(s.t))
		s.serve()
		s.option("minion", "ssl: {ca_certs: "+certs.Make(s.t)+"/ca.pem}")
	},
		run("salt-call test.ping", 1, "certificate signed by unknown authority"), stays("salt-minion", "certificate signed by unknown authority"))
	add("the minion has no certificate", func(s *site) {
		dir := certs.Make(s.t)
		s.tls(dir)
		s.serve()
		s.option("minion", "ssl: {ca_certs: "+dir+"/ca.pem}")
	},
		run("salt-call test.ping", 1, "certificate required"), stays("salt-minion", "certificate required"))
	const ended = "certificate has expired or is not yet valid: current time"
	add("certificate has ended or the clock is far off", func(s *site) { s.tls(certs.Expired(s.t)); s.serve() },
		run("salt-call test.ping", 1, ended), stays("salt-minion", ended))
	const same = "the options transport and ssl must be the same as on the master"
	add("the master wants TLS", func(s *site) { s.tls(certs.Make(s.t)); s.serve(); s.option("minion", "ssl: false") },
		run("salt-call test.ping", 1, same), stays("salt-minion", same))
	add("the master has no TLS", func(s *site) { s.tls(certs.Make(s.t)); s.option("master", "ssl: false"); s.serve() },
		run("salt-call test.ping", 1, same), stays("salt-minion", same))
	add("the master has another transport", func(s *site) { s.serve(); s.option("minion", "transport: tcp") },
		run("salt-call test.ping", 1, same), stays("salt-minion", same))
	add("something else has the master's port", func(s *site) {
		s.listen(s.ret, "HTTP/1.1 400 Bad Request\r\n\r\n")
		s.write("cache/master/.root_key", "x")
	},
		run("salt-call test.ping", 1, same), stays("salt-minion", same), run("salt m test.ping", 0, away))
	web := func(after func(s *site)) func(s *site) {
		return func(s *site) {
			s.option("master", "external_auth: {file: {^filename: "+s.path("users")+", ann: ['test.ping']}}")
			s.write("users", "ann:right\n")
			s.option("master", fmt.Sprintf("rest_cherrypy: {port: %d, host: 127.0.0.1, disable_ssl: true}", s.http))
			s.option("master", "netapi_enable_clients: [local]")
			after(s)
		}
	}
	const run1 = "http /run client=local&tgt=m&fun=test.ping&eauth=file&username=ann&password="
	add("HTTP: credentials are refused", web(func(s *site) { s.serve() }),
		run("http /login eauth=file&username=ann&password=wrong", 401, "Could not authenticate using provided credentials"),
		run(run1+"wrong", 401, ""), run("http /minions fun=test.ping&tgt=m", 401, "No permission"),
		run("http /run client=nosuch&eauth=file&username=ann&password=right", 400, "Invalid client"))
	add("HTTP: disk of the master is full", web(func(s *site) { s.small("cache/master"); s.serve(); s.top("cache/master") }),
		run(run1+"right", 503, full), run("http /login eauth=file&username=ann&password=right", 200, "token"))
	if withServers != nil {
		withServers(add, run, web)
	}
	return all
}

// post sends a form to the HTTP interface and returns the status and the body.
func (s *site) post(path, form string) (int, string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, fmt.Sprintf("http://127.0.0.1:%d%s", s.http, path), strings.NewReader(form))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer.StatusCode, string(b)
}

// top fills the rest of a small file system.
func (s *site) top(name string) {
	s.t.Helper()
	f, err := os.Create(filepath.Join(s.path(name), "ballast"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer f.Close()
	for block := make([]byte, 4096); ; {
		if _, err := f.Write(block); err != nil {
			return
		}
	}
}

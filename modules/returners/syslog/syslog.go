// Package syslog is Salt's returner "syslog": returns as JSON in the host's system log. Salt's source:
// salt/returners/syslog_return.py.
package syslog

import (
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/returners"
)

func init() { returners.Register(Module) }

// Module returns the returner "syslog".
func Module() *modules.Module {
	return &modules.Module{Name: "syslog_return", Virtual: "syslog", Doc: "Write returns to the host's system log.", Available: available, Funcs: []modules.Def{
		returners.Prep(),
		returners.Def("returner", "Write a return to the system log.", returner, "ret"),
	}}
}

// sockets returns the sockets on which system logs may listen.
func sockets() []string { return []string{"/dev/log", "/var/run/syslog", "/var/run/log"} }

func available(*modules.Env) (bool, string) {
	return os.PathSeparator == '/', "Could not import syslog returner; syslog is not installed."
}

func options(c *modules.Call, ret map[string]any) map[string]any {
	return returners.Options(c, "syslog", ret, returners.Attrs("level", "facility", "tag", "options"),
		map[string]any{"level": "LOG_INFO", "facility": "LOG_USER", "options": []any{}})
}

func level(name string) int {
	return slices.Index([]string{"LOG_EMERG", "LOG_ALERT", "LOG_CRIT", "LOG_ERR", "LOG_WARNING", "LOG_NOTICE", "LOG_INFO", "LOG_DEBUG"}, name)
}

func facility(name string) int {
	return slices.Index([]string{"LOG_KERN", "LOG_USER", "LOG_MAIL", "LOG_DAEMON", "LOG_AUTH", "LOG_SYSLOG", "LOG_LPR", "LOG_NEWS", "LOG_UUCP",
		"LOG_CRON", "LOG_AUTHPRIV", "", "", "", "", "", "LOG_LOCAL0", "LOG_LOCAL1", "LOG_LOCAL2", "LOG_LOCAL3", "LOG_LOCAL4", "LOG_LOCAL5",
		"LOG_LOCAL6", "LOG_LOCAL7"}, name)
}

func returner(ctx context.Context, c *modules.Call) (any, error) {
	ret, err := returners.Return(c)
	if err != nil {
		return nil, err
	}
	o := options(c, ret)
	lev, fac := level(pytext.Str(o["level"])), facility(pytext.Str(o["facility"]))
	if lev < 0 {
		c.Logger().Error("syslog has no attribute " + pytext.Str(o["level"]))
		return nil, nil
	}
	if fac < 0 {
		c.Logger().Error("syslog has no attribute " + pytext.Str(o["facility"]))
		return nil, nil
	}
	tag := "salt-minion"
	if v, ok := o["tag"]; ok {
		s, isText := v.(string)
		switch {
		case !isText:
			c.Logger().Error("tag must be a string")
			return nil, nil
		case len(s) > 32:
			c.Logger().Error("tag size is limited to 32 characters")
			return nil, nil
		}
		tag = s
	}
	pid := ""
	list, _ := o["options"].([]any)
	for _, x := range list {
		switch name := pytext.Str(x); name {
		case "LOG_PID":
			pid = fmt.Sprintf("[%d]", os.Getpid())
		case "LOG_CONS", "LOG_NDELAY", "LOG_NOWAIT", "LOG_PERROR", "LOG_ODELAY":
		default:
			c.Logger().Error("syslog has no attribute " + name)
			return nil, nil
		}
	}
	text, err := returners.JSON(ret)
	if err != nil {
		return nil, err
	}
	line := fmt.Sprintf("<%d>%s %s%s: %s", fac<<3|lev, c.Now().Local().Format(time.Stamp), tag, pid, strings.ReplaceAll(text, "\x00", ""))
	return nil, send(ctx, c, line)
}

// writeTimeout bounds how long a full system log holds a job up.
const writeTimeout = 5 * time.Second

func send(ctx context.Context, c *modules.Call, line string) error {
	var last error
	for _, path := range sockets() {
		for _, network := range [...]string{"unixgram", "unix"} {
			d := net.Dialer{Timeout: writeTimeout}
			conn, err := d.DialContext(ctx, network, c.Path(path))
			if err != nil {
				last = err
				continue
			}
			defer conn.Close()
			if network == "unix" {
				line += "\x00"
			}
			if err := conn.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
				return err
			}
			if _, err = conn.Write([]byte(line)); err != nil {
				return fmt.Errorf("cannot write to the system log: %w", err)
			}
			return nil
		}
	}
	return fmt.Errorf("cannot reach the system log: %w", last)
}

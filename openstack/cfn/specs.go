package cfn

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"sync"
	"time"
)

// specs returns the options of a program: those of heat-cfntools in its order, then brine's.
func specs(name string) *parser {
	keys := []option{
		{long: "--access-key", metavar: "ACCESS_KEY", help: "EC2 access key of keystone"},
		{long: "--secret-key", metavar: "SECRET_KEY", help: "EC2 secret key of keystone"},
		{long: "--region", metavar: "REGION", help: "accepted, without effect"},
	}
	switch name {
	case "cfn-init":
		options := []option{
			{short: "-s", long: "--stack", metavar: "STACK_NAME", help: "stack of the metadata"},
			{short: "-r", long: "--resource", metavar: "LOGICAL_RESOURCE_ID", help: "resource of the metadata"},
		}
		options = append(options, keys...)
		return &parser{prog: name, options: append(options, option{short: "-c", long: "--configsets", metavar: "CONFIGSETS",
			help: "configSets to apply, with commas between (default: default)"})}
	case "cfn-hup":
		return &parser{prog: name, options: []option{
			{short: "-c", long: "--config", metavar: "CONFIG_DIR", def: hooksDir, help: "directory of the hooks"},
			{short: "-f", long: "--no-daemon", help: "look once and end; this is the default"},
			{short: "-v", long: "--verbose", help: "log more"},
			{long: "--daemon", help: "look again every interval of cfn-hup.conf"},
		}}
	case "cfn-signal":
		return &parser{prog: name, positional: []string{"url"}, help: []string{"address of the wait condition"}, options: []option{
			{short: "-s", long: "--success", metavar: "SUCCESS", def: "true", help: "true for success"},
			{short: "-r", long: "--reason", metavar: "REASON", def: defaultReason, help: "reason that Heat shows"},
			{short: "-d", long: "--data", metavar: "DATA", def: defaultData, help: "data that Heat shows"},
			{short: "-i", long: "--id", metavar: "UNIQUE_ID", help: "id of the signal (default: the server's)"},
			{short: "-e", long: "--exit-code", metavar: "EXIT_CODE", help: "exit code of a program; 0 is success"},
			{long: "--exit", metavar: "EXIT", help: "old name of --exit-code"},
			{short: "-k", long: "--insecure", help: "accept any certificate"},
		}}
	}
	options := []option{
		{short: "-s", long: "--stack", metavar: "STACK_NAME", required: true, help: "stack of the metadata"},
		{short: "-r", long: "--resource", metavar: "LOGICAL_RESOURCE_ID", required: true, help: "resource of the metadata"},
	}
	options = append(options, keys...)
	return &parser{prog: name, options: append(options,
		option{long: "--credential-file", metavar: "CREDENTIAL_FILE", help: "file with the keys"},
		option{short: "-u", long: "--url", metavar: "URL", help: "address of the CFN API"},
		option{short: "-k", long: "--key", metavar: "KEY", help: "key of the metadata to print, as a.b or a.'b.c'"})}
}

// lineHandler writes log lines in heat-cfntools' format: LEVEL [time] message.
type lineHandler struct {
	out   io.Writer
	level slog.Level
	now   func() time.Time
	attrs []slog.Attr

	mu sync.Mutex
}

func (h *lineHandler) Enabled(_ context.Context, l slog.Level) bool { return l >= h.level }

func (h *lineHandler) Handle(_ context.Context, r slog.Record) error {
	level := r.Level.String()
	if level == "WARN" {
		level = "WARNING"
	}
	var b bytes.Buffer
	b.WriteString(level + " [" + h.now().Format("2006-01-02 15:04:05,000") + "] " + r.Message)
	add := func(a slog.Attr) bool {
		b.WriteString(" " + a.Key + "=" + a.Value.String())
		return true
	}
	for _, a := range h.attrs {
		add(a)
	}
	r.Attrs(add)
	b.WriteByte('\n')
	h.mu.Lock()
	defer h.mu.Unlock()
	_, err := h.out.Write(b.Bytes())
	return err
}

func (h *lineHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &lineHandler{out: h.out, level: h.level, now: h.now, attrs: append(append([]slog.Attr{}, h.attrs...), attrs...)}
}

func (h *lineHandler) WithGroup(string) slog.Handler { return h }

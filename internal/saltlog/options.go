package saltlog

import (
	"fmt"
	"io"
	"time"
)

// Options are the targets and formats of a log. FromConfig sets them from Salt's options. The zero value writes no
// log.
type Options struct {
	// Console receives lines at ConsoleLevel and above, or is nil for no console. If it is set, the color… keys are
	// in colour; as in Salt, that includes the file.
	Console                                  io.Writer
	ConsoleLevel, ConsoleFormat, ConsoleDate string
	// File is a path, file:///dev/log[/LOG_FACILITY], udp://host[:port][/LOG_FACILITY] or tcp://…; "" means no
	// file.
	File                            string
	FileLevel, FileFormat, FileDate string
	// MaxBytes is the size at which a file is rotated; 0 means never. Backups is the number of old files that are
	// kept.
	MaxBytes int64
	Backups  int
	// Granular holds minimum levels by logger name (log_granular_levels). They also apply to the loggers below that
	// name. They can only hide records: each target's level applies as well.
	Granular map[string]any
	// JIDFormat and MinionFormat are the formats of the keys jid ("[JID: %(jid)s]") and minion_id.
	JIDFormat, MinionFormat string
	// MinionID is the minion_id of records that have no such attribute.
	MinionID string
	// Name is the logger name of records from packages of other modules, unless they have an attribute "logger".
	Name string
	// Now and Pid replace the clock and the process id in tests.
	Now func() time.Time
	Pid int
}

// FromConfig returns the log options for a program's configuration. name is the logger's name, console the writer for
// the console.
func FromConfig(opts map[string]any, name string, console io.Writer) Options {
	text := func(keys ...string) string {
		for _, key := range keys {
			switch v := opts[key].(type) {
			case nil:
			case string:
				if v != "" {
					return v
				}
			default:
				return fmt.Sprint(v)
			}
		}
		return ""
	}
	number := func(key string) int64 {
		n, _ := opts[key].(int64)
		return n
	}
	granular, _ := opts["log_granular_levels"].(map[string]any)
	return Options{
		Console: console, ConsoleLevel: text("log_level"), ConsoleFormat: text("log_fmt_console", "log_fmt"),
		ConsoleDate: text("log_datefmt_console", "log_datefmt"),
		File:        text("log_file"), FileLevel: text("log_level_logfile", "log_level"),
		FileFormat: text("log_fmt_logfile", "log_fmt_console", "log_fmt"),
		FileDate:   text("log_datefmt_logfile", "log_datefmt_console", "log_datefmt"),
		MaxBytes:   number("log_rotate_max_bytes"), Backups: int(number("log_rotate_backup_count")),
		Granular: granular, JIDFormat: text("log_fmt_jid"), MinionFormat: text("log_fmt_minion_id"),
		MinionID: text("id"), Name: name,
	}
}

// Salt's defaults for empty Options (salt/_logging/impl.py).
const (
	defaultConsole     = "[%(levelname)-8s] %(message)s"
	defaultConsoleDate = "%H:%M:%S"
	defaultFile        = "%(asctime)s,%(msecs)03d [%(name)-17s:%(lineno)-4d][%(levelname)-8s][%(process)d] %(message)s"
	defaultFileDate    = "%Y-%m-%d %H:%M:%S"
	defaultJID         = "[JID: %(jid)s]"
	defaultMinion      = "[%(minion_id)s]"
)

func or(s, def string) string {
	if s == "" {
		return def
	}
	return s
}

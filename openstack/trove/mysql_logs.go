package trove

import (
	"context"
	"path"
)

// logs returns the general log, the log of slow queries and the error log.
func (m *mysqlServer) logs() ([]*guestLog, error) {
	general := path.Join(m.dataDir, m.manager+"-general.log")
	slow := path.Join(m.dataDir, m.manager+"-slow_query.log")
	list := []*guestLog{
		{name: "general", file: general, on: map[string]any{"general_log": "on", "general_log_file": general, "log_output": "file"},
			off: map[string]any{"general_log": "off"}},
		{name: "slow_query", file: slow, on: map[string]any{"slow_query_log": "on", "slow_query_log_file": slow,
			"long_query_time": m.longQueryTime / 1000}, off: map[string]any{"slow_query_log": "off"}},
		{name: "error", file: m.errorLog, system: true},
	}
	for i, variable := range [...]string{"general_log", "slow_query_log"} {
		value, err := m.configured(variable)
		if err != nil {
			return nil, err
		}
		list[i].enabled = value == "on"
	}
	return list, nil
}

func (m *mysqlServer) switchLog(ctx context.Context, values map[string]any) error {
	// Set the file before the switch: while the log is enabled, the server does not change its file.
	for _, key := range [...]string{"general_log_file", "slow_query_log_file", "log_output", "long_query_time", "general_log",
		"slow_query_log"} {
		if v, ok := values[key]; ok {
			if err := m.exec(ctx, "SET GLOBAL "+key+variable(v)); err != nil {
				return err
			}
		}
	}
	return nil
}

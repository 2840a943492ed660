package conf

import (
	"fmt"
	"slices"
)

// refusedLocks are the options of a master that lock something in stock and that this one does not honour, with what to do. A lock
// that is silently open is worse than a master that does not start.
func refusedLocks() map[string]string {
	return map[string]string{
		"require_minion_sign_messages": "remove it: every request of a minion is encrypted with a key that only this minion and the master have",
		"drop_messages_signature_fail": "remove it: requests that do not authenticate are always dropped",
		"eauth_acl_module":             "remove it and write the rules to external_auth",
		"cluster_pub_fingerprint":      "remove it: masters find each other in their database",
		"publish_whitelist":            "remove it and write the rules to publisher_acl",
	}
}

// RefuseLocks is an error for a master's option that locks something and has no effect here. An option that is unset or off is no error.
func (c *Config) RefuseLocks() error {
	locks := refusedLocks()
	names := make([]string, 0, len(locks))
	for name := range locks {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if v, set := c.Opts[name]; set && Truth(v) {
			return fmt.Errorf("the option %s is not supported by this master, and a lock must not be open: %s", name, locks[name])
		}
	}
	return nil
}

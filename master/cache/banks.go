package cache

// banks are the directories in which Salt 3008 keeps what its predecessors have in minions/<id>: a file <id>.p for each
// minion (salt/utils/master.py, salt/utils/minions.py). This master writes them for 3008's tools (salt-run
// cache.grains, cache.mine, manage.*) and never reads them: what those tools clear there comes again with what the
// minion sends next.
var banks = [...]string{"grains", "pillar", "mine"}

// copyTo writes the copy in a bank of 3008. There are none in memory and in a database.
func (c *Cache) copyTo(bank, id string, m map[string]any) error {
	if c.dir == nil {
		return nil
	}
	if m == nil {
		m = map[string]any{}
	}
	b, err := pack(m)
	if err != nil {
		return err
	}
	return c.put(bank, id+".p", b)
}

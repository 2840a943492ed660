package cache

// banks are the directories in which Salt 3008 stores what earlier releases have in minions/<id>: a file <id>.p
// for each minion (salt/utils/master.py, salt/utils/minions.py). This master writes them for 3008's tools
// (salt-run cache.grains, cache.mine, manage.*) and never reads them: data that those tools delete reappears
// with the minion's next request.
var banks = [...]string{"grains", "pillar", "mine"}

// copyTo writes the copy in one of 3008's banks. It does nothing for a cache in memory or in a database.
func (c *Cache) copyTo(bank, id string, m any) error {
	if c.dir == nil {
		return nil
	}
	b, err := pack(m)
	if err != nil {
		return err
	}
	return c.put(bank, id+".p", b)
}

plain: text
number: 7
nested: {a: {b: {c: deep}}, list: [x, y, {z: 1}]}
secret: {password: hunter2, list: [a, 1, 2.5, true, null]}
custom: {nested: {fromp: 1}}
both_list: [1, b]
gpg_passphrase: correct horse

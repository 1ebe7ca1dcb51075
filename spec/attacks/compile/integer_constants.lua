-- attack: a hundred thousand numbers as constants.
-- expect: held
return { @x130000{@I@,}@ }

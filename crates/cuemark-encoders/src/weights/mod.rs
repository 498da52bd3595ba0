//! Which weights exist, what each is for, and where they lie on this machine.

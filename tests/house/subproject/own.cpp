// What each of the parent's targets is made of.
int own() { return 40; }

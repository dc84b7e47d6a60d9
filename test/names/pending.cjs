// What a checker of this folder knows and does not report: a file with lines "COUNT PATH". A path that has fewer findings must lower
// its line, so that the list only shrinks. --lower does that.
const fs = require('fs');

// Of the arguments [--pending FILE] [--lower] FILE...; `say` takes a line of the output, `things` names the findings.
module.exports = class {
  constructor(words, things, say) {
    Object.assign(this, { things, say, list: '', counts: new Map(), left: [] });
    if (words[0] === '--pending') {
      this.list = words[1];
      for (const line of fs.readFileSync(this.list, 'utf8').split('\n').filter(Boolean)) {
        const [count, path] = line.split(' ');
        this.counts.set(path, Number(count));
      }
      words = words.slice(2);
    }
    this.isLowering = words[0] === '--lower';
    this.files = this.isLowering ? words.slice(1) : words;
  }

  // Are more than the known findings there?
  hasNew(file, count) {
    const known = this.counts.get(file) ?? 0;
    if (count < known && !this.isLowering) this.say(`${file}:1: ${count} ${this.things} are left and ${this.list} says ${known}: lower it`);
    if (Math.min(count, known) > 0) this.left.push([file, Math.min(count, known)]);
    this.counts.delete(file);
    return count > known;
  }

  // After the last file.
  end() {
    if (this.isLowering) fs.writeFileSync(this.list, this.left.sort().map(([file, count]) => `${count} ${file}\n`).join(''));
    else for (const file of this.counts.keys()) this.say(`${file}:1: is in ${this.list} and is no file: take it out`);
  }
};

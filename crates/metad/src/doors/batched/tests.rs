use super::*;

const ENTRIES_MAX: usize = 5;

/// Paths with their homes, and how many entries are there; `None`: nothing is there.
type Paths = Vec<(u32, Option<usize>)>;

fn name(path: usize, entry: usize) -> Bytes {
    format!("{path}-{entry:02}").into()
}

/// What a single group answers, by the rules of HDFS.
fn one_group(
    paths: &[(usize, Option<usize>)],
    cookie: &Bytes,
    entries_max: usize,
) -> p::GetBatchedListingResponseProto {
    let (first, after) = place_of(cookie.clone()).unwrap();
    let mut answer = p::GetBatchedListingResponseProto {
        start_after: cookie_of(0, b"").into(),
        ..p::GetBatchedListingResponseProto::default()
    };
    let mut told = 0;
    for (index, (path, count)) in paths.iter().enumerate().skip(first as usize) {
        let mut listing = p::BatchedDirectoryListingProto { parent_idx: index as u32, ..Default::default() };
        let Some(count) = count else {
            listing.exception =
                Some(p::RemoteExceptionProto { class_name: "none".into(), message: Some(path.to_string()) });
            answer.listings.push(listing);
            continue;
        };
        let behind = |name: &Bytes| index != first as usize || after.is_empty() || *name > after;
        let mut left = (0..*count).map(|entry| name(*path, entry)).filter(behind);
        let page: Vec<Bytes> = left.by_ref().take(entries_max).collect();
        told += page.len();
        let last = page.last().cloned().unwrap_or_default();
        listing.partial_listing =
            page.into_iter().map(|path| p::HdfsFileStatusProto { path, ..Default::default() }).collect();
        answer.listings.push(listing);
        let next = match left.next() {
            Some(_) => Some((index, last)),
            None if told >= entries_max && index + 1 < paths.len() => Some((index + 1, Bytes::new())),
            None => None,
        };
        if let Some((index, name)) = next {
            answer.has_more = true;
            answer.start_after = cookie_of(index as u32, &name).into();
            break;
        }
    }
    answer
}

/// One call, taken apart. `entries_max`: what the homes tell at most.
fn apart(paths: &Paths, cookie: &Bytes, entries_max: usize) -> p::GetBatchedListingResponseProto {
    let homes: Vec<GroupId> = paths.iter().map(|(home, _)| GroupId(*home)).collect();
    let batch = get_listing::Batch {
        directories: (0..paths.len()).map(|path| path.to_string()).collect(),
        start: place_of(cookie.clone()).unwrap(),
        need_location: false,
    };
    let mut answers = Parts::new();
    for (home, part) in Part::of(&homes, &batch) {
        let asked = p::GetBatchedListingRequestProto::decode(part.request(&batch)).unwrap();
        let of_home: Vec<(usize, Option<usize>)> = asked
            .paths
            .iter()
            .map(|path| path.parse().unwrap())
            .map(|path: usize| (path, paths[path].1))
            .collect();
        let answer = one_group(&of_home, &asked.start_after, entries_max);
        answers.insert(home, answer.encode_to_vec().into());
    }
    let merged = Merged { homes, first: batch.start.0 as usize, entries_max: ENTRIES_MAX };
    p::GetBatchedListingResponseProto::decode(merged.merge(answers).unwrap()).unwrap()
}

/// Every choice of a few paths, with three homes: all pages are those of one group.
#[test]
fn the_pages_are_those_of_one_group() {
    let kinds = [None, Some(0), Some(1), Some(3), Some(5), Some(12)];
    let mut pages = 0;
    for choice in 0..6_usize.pow(4) {
        let mut rest = choice;
        let paths: Paths = (0..4)
            .map(|path| {
                let kind = kinds[rest % 6];
                rest /= 6;
                (1 + ((path + choice) % 3) as u32, kind)
            })
            .collect();
        let of_one: Vec<(usize, Option<usize>)> =
            paths.iter().enumerate().map(|(path, (_, count))| (path, *count)).collect();
        let mut cookie = Bytes::new();
        loop {
            let expected = one_group(&of_one, &cookie, ENTRIES_MAX);
            assert_eq!(apart(&paths, &cookie, ENTRIES_MAX), expected, "{paths:?}");
            pages += 1;
            if !expected.has_more {
                break;
            }
            cookie = expected.start_after;
        }
    }
    assert!(pages > 2_000, "{pages}");
}

/// The limits are each server's own.
#[test]
fn a_home_that_tells_less_in_one_answer_only_makes_the_pages_shorter() {
    let paths = vec![(1, Some(4)), (2, Some(12)), (1, None), (1, Some(3)), (2, Some(1))];
    let (mut cookie, mut names, mut failed) = (Bytes::new(), Vec::new(), 0);
    loop {
        let page = apart(&paths, &cookie, 2);
        for listing in page.listings {
            failed += usize::from(listing.exception.is_some());
            names.extend(listing.partial_listing.into_iter().map(|entry| entry.path));
        }
        if !page.has_more {
            break;
        }
        cookie = page.start_after;
    }
    let all: Vec<Bytes> = [(0, 4), (1, 12), (3, 3), (4, 1)]
        .into_iter()
        .flat_map(|(path, count)| (0..count).map(move |entry| name(path, entry)))
        .collect();
    assert_eq!((names, failed), (all, 1));
}

/// A group's bytes are not trusted to make sense.
#[test]
fn answers_that_leave_something_out_are_told() {
    let merge = |answers: Vec<(u32, p::GetBatchedListingResponseProto)>| {
        let merged = Merged { homes: vec![GroupId(1), GroupId(2)], first: 0, entries_max: ENTRIES_MAX };
        let answers =
            answers.into_iter().map(|(group, answer)| (GroupId(group), answer.encode_to_vec().into()));
        merged.merge(answers.collect()).map(drop)
    };
    let whole = one_group(&[(0, Some(1))], &Bytes::new(), ENTRIES_MAX);
    assert_eq!(merge(vec![(1, whole.clone()), (2, whole.clone())]), Ok(()));
    assert!(merge(vec![(1, whole.clone())]).is_err());
    assert!(merge(vec![(1, whole.clone()), (2, Default::default())]).is_err());
    let cut =
        p::GetBatchedListingResponseProto { has_more: true, start_after: b"x"[..].into(), ..whole.clone() };
    assert!(merge(vec![(1, cut), (2, whole)]).is_err());
}

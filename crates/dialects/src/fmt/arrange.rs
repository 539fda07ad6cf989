//! Puts the keys of a [`Node`] into canonical order, and comments where the printer can write them.

use super::order::{KeyOrder, MapOrder};
use super::tree::{Collection, Content, Layout, Line, Member, Node, Shape};

/// The reader limits the depth of trees, which bounds the recursion.
pub(super) fn arrange(node: &mut Node<'_>, order: KeyOrder) {
    let Content::Collection(collection) = &mut node.content else { return };
    match collection.shape {
        Shape::Map => arrange_map(collection, &order.mapping(entries(&collection.members))),
        Shape::List => collection.members.iter_mut().for_each(|item| arrange(&mut item.value, order.item())),
    }
    if collection.layout == Layout::Block && collection.shape == Shape::List {
        collection.members.iter_mut().for_each(lift_comments);
    }
}

fn arrange_map(map: &mut Collection<'_>, order: &MapOrder) {
    sort(map, order);
    for member in &mut map.members {
        let below = order.below(name(member));
        arrange(&mut member.value, below);
    }
}

fn entries<'a>(members: &'a [Member<'_>]) -> impl Iterator<Item = (&'a str, Option<&'a str>)> + Clone {
    members.iter().map(|member| {
        let text = match &member.value.content {
            Content::Scalar(scalar) => Some(scalar.text.as_str()),
            Content::Absent | Content::Alias(_) | Content::Block(_) | Content::Collection(_) => None,
        };
        (name(member), text)
    })
}

fn name<'a>(member: &'a Member<'_>) -> &'a str {
    member.key.as_ref().map_or("", Node::text)
}

/// An alias must stay after its anchor, so members that contain one or the other are never reordered.
fn sort(map: &mut Collection<'_>, order: &MapOrder) {
    let rank = |member: &Member<'_>| order.rank(name(member));
    let mut tied = map.members.iter().filter(|member| member.is_tied()).map(rank);
    if map.members.iter().map(rank).is_sorted() || !tied.by_ref().is_sorted() {
        return;
    }
    let separated = are_separated(&map.members);
    map.members.sort_by_key(rank);
    if separated {
        map.members.iter_mut().for_each(separate);
    }
}

/// Blank lines separate members instead of preceding some of them.
fn are_separated(members: &[Member<'_>]) -> bool {
    let blank = members.iter().skip(1).filter(|member| member.above.first() == Some(&Line::Blank)).count();
    blank > 0 && 2 * blank >= members.len() - 1
}

fn separate(member: &mut Member<'_>) {
    if member.above.first() != Some(&Line::Blank) {
        member.above.insert(0, Line::Blank);
    }
}

/// A comment cannot precede a value on the line of its dash, so it moves above the dash.
fn lift_comments(item: &mut Member<'_>) {
    let mut lifted = Vec::new();
    front_comments(&mut item.value, &mut lifted);
    item.above.extend(lifted);
}

fn front_comments<'a>(node: &mut Node<'a>, lifted: &mut Vec<Line<'a>>) {
    if node.block().is_none() || !node.properties.is_empty() {
        return;
    }
    lifted.extend(node.comment.take().map(Line::Text));
    let Content::Collection(collection) = &mut node.content else { return };
    let Some(first) = collection.members.first_mut() else { return };
    lifted.extend(std::mem::take(&mut first.above).into_iter().filter(|line| *line != Line::Blank));
    if collection.shape == Shape::List {
        front_comments(&mut first.value, lifted);
    }
}
